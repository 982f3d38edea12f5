//! The same functions over std's clocks, on systems other than Linux (feature `std`).

/// The public functions, which are documented for Linux. They differ in their errors: `EINVAL` for
/// a clock that std does not have, `ENOSYS` for what std does not know, and `EOVERFLOW` for a time
/// more than 292 years away from the clock's zero.
#[allow(missing_docs, clippy::missing_errors_doc, reason = "documented for Linux")]
pub(crate) mod calls {
    use std::sync::OnceLock;
    use std::time::{Instant, SystemTime};

    use crate::errno::Errno;
    use crate::types::{ClockId, Cpu, Timespec, Timeval};

    #[must_use]
    pub fn time() -> i64 {
        try_time().unwrap_or(-1)
    }

    pub fn try_time() -> Result<i64, Errno> {
        clock_gettime(ClockId::REALTIME).map(|time| time.tv_sec)
    }

    pub fn gettimeofday() -> Result<Timeval, Errno> {
        clock_gettime(ClockId::REALTIME).map(Timeval::from)
    }

    /// `MONOTONIC` is std's `Instant`. It counts from the first read in this process.
    pub fn clock_gettime(clock: ClockId) -> Result<Timespec, Errno> {
        let (elapsed, is_negative) = match clock {
            ClockId::REALTIME | ClockId::REALTIME_COARSE => {
                match SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
                    Ok(elapsed) => (elapsed, false),
                    Err(error) => (error.duration(), true),
                }
            }
            ClockId::MONOTONIC | ClockId::MONOTONIC_COARSE => {
                static START: OnceLock<Instant> = OnceLock::new();
                (START.get_or_init(Instant::now).elapsed(), false)
            }
            _ => return Err(Errno::EINVAL),
        };
        let nanos = i64::try_from(elapsed.as_nanos()).map_err(|_| Errno::EOVERFLOW)?;
        Ok(Timespec::from_nanos(if is_negative { -nanos } else { nanos }))
    }

    pub fn clock_getres(_: ClockId) -> Result<Timespec, Errno> {
        Err(Errno::ENOSYS)
    }

    pub fn getcpu() -> Result<Cpu, Errno> {
        Err(Errno::ENOSYS)
    }
}

/// The routes of this process.
pub(crate) mod routes {
    use crate::route::{Route, Routes};

    /// Returns what answers each function: [`Route::Std`].
    #[must_use]
    pub fn routes() -> Routes {
        Routes::all(Route::Std)
    }

    /// Does nothing: there is no vDSO to find.
    pub fn warm_up() {}
}
