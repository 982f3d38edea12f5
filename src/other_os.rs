//! The same functions over std's clocks, on systems other than Linux (feature `std`).

/// The public functions.
pub(crate) mod calls {
    use std::sync::OnceLock;
    use std::time::{Instant, SystemTime};

    use crate::errno::Errno;
    use crate::types::{ClockId, Cpu, Timespec, Timeval};

    /// Returns the seconds since the Epoch.
    ///
    /// The result is -1 if the clock is more than 292 years away from the Epoch.
    ///
    /// # Examples
    ///
    /// ```
    /// assert!(vdso_time::time() > 1_700_000_000);
    /// ```
    #[must_use]
    pub fn time() -> i64 {
        try_time().unwrap_or(-1)
    }

    /// Returns the seconds since the Epoch.
    ///
    /// # Errors
    ///
    /// `EOVERFLOW` if the clock is more than 292 years away from the Epoch.
    pub fn try_time() -> Result<i64, Errno> {
        clock_gettime(ClockId::REALTIME).map(|time| time.tv_sec)
    }

    /// Returns the time since the Epoch in microseconds.
    ///
    /// # Errors
    ///
    /// Those of [`try_time`].
    pub fn gettimeofday() -> Result<Timeval, Errno> {
        clock_gettime(ClockId::REALTIME).map(Timeval::from)
    }

    /// Returns the time of a clock: `REALTIME` and `MONOTONIC`, and the same for their coarse forms.
    ///
    /// `MONOTONIC` is std's `Instant`. It counts from the first read in this process.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: std has no such clock.
    /// - `EOVERFLOW`: the time is more than 292 years away from the clock's zero.
    ///
    /// # Examples
    ///
    /// ```
    /// use vdso_time::{ClockId, clock_gettime};
    ///
    /// let start = clock_gettime(ClockId::MONOTONIC)?;
    /// assert!(clock_gettime(ClockId::MONOTONIC)? >= start);
    /// # Ok::<(), vdso_time::Errno>(())
    /// ```
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

    /// Returns the resolution of a clock, which std does not know.
    ///
    /// # Errors
    ///
    /// Always `ENOSYS`.
    pub fn clock_getres(_: ClockId) -> Result<Timespec, Errno> {
        Err(Errno::ENOSYS)
    }

    /// Returns the CPU and the NUMA node on which the thread runs, which std does not know.
    ///
    /// # Errors
    ///
    /// Always `ENOSYS`.
    pub fn getcpu() -> Result<Cpu, Errno> {
        Err(Errno::ENOSYS)
    }

    /// Returns the CPU on which the thread runs, which std does not know.
    ///
    /// # Errors
    ///
    /// Always `ENOSYS`.
    pub fn cpu() -> Result<u32, Errno> {
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

/// This machine.
pub(crate) mod native {
    #[cfg(feature = "counter")]
    pub(crate) use crate::arch::without_assembly::counter;
}
