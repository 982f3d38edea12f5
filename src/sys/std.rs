//! The public functions on top of std's clocks, on systems other than Linux (feature `std`).

use crate::routes::{Route, Routes};

/// The public functions, which are documented for Linux. Unlike on Linux, they return `EINVAL` for
/// a clock that std does not have, and `ENOSYS` for the resolution and the CPU, which std does not
/// report.
#[allow(
    missing_docs,
    clippy::missing_errors_doc,
    reason = "documented for Linux"
)]
pub(crate) mod calls {
    use std::sync::OnceLock;
    use std::time::{Instant, UNIX_EPOCH};

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
        clock_gettime(ClockId::REALTIME).map(Timeval::of)
    }

    /// Answers `MONOTONIC` with std's `Instant`, counted from the first read in this process.
    pub fn clock_gettime(clock: ClockId) -> Result<Timespec, Errno> {
        static START: OnceLock<Instant> = OnceLock::new();
        // On this target, std's clocks panic.
        if cfg!(all(target_family = "wasm", target_os = "unknown")) {
            return Err(Errno::ENOSYS);
        }
        match clock {
            ClockId::REALTIME | ClockId::REALTIME_COARSE => match UNIX_EPOCH.elapsed() {
                Ok(after) => after.try_into(),
                Err(before) => {
                    let nanos = before.duration().as_nanos() as i128;
                    Timespec::from_all_nanos(-nanos).ok_or(Errno::EOVERFLOW)
                }
            },
            ClockId::MONOTONIC | ClockId::MONOTONIC_COARSE => {
                START.get_or_init(Instant::now).elapsed().try_into()
            }
            _ => Err(Errno::EINVAL),
        }
    }

    pub fn clock_getres(_: ClockId) -> Result<Timespec, Errno> {
        Err(Errno::ENOSYS)
    }

    pub fn getcpu() -> Result<Cpu, Errno> {
        Err(Errno::ENOSYS)
    }
}

/// Returns what answers each function: [`Route::Std`].
#[must_use]
pub fn routes() -> Routes {
    Routes::all(Route::Std)
}

/// Does nothing, because this system has no vDSO.
pub fn warm_up() {}
