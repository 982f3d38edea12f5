//! Conversions from coarse times and `Timespec`, and from and to std's `SystemTime`.
//!
//! A conversion whose result may not fit is a `TryFrom`, so no time becomes wrong silently.

#[cfg(feature = "std")]
use super::Realtime;
use super::{Instant, MonotonicCoarse, RealtimeCoarse, SystemTime};
use crate::errno::Errno;
use crate::types::Timespec;

impl From<Instant<MonotonicCoarse>> for Instant {
    /// Converts a time of `CLOCK_MONOTONIC_COARSE` to the same time of `CLOCK_MONOTONIC`.
    ///
    /// # Examples
    ///
    /// ```
    /// use vdso_time::{Clock, Instant, MonotonicCoarse};
    ///
    /// let tick: Instant = MonotonicCoarse::now().into();
    /// println!("the last tick was {:?} ago", tick.elapsed());
    /// ```
    #[inline]
    fn from(time: Instant<MonotonicCoarse>) -> Self {
        Self::from_nanos(time.as_nanos())
    }
}

impl From<SystemTime<RealtimeCoarse>> for SystemTime {
    /// Converts a time of `CLOCK_REALTIME_COARSE` to the same time of `CLOCK_REALTIME`.
    #[inline]
    fn from(time: SystemTime<RealtimeCoarse>) -> Self {
        Self::from_nanos(time.as_nanos())
    }
}

impl TryFrom<Timespec> for SystemTime {
    type Error = Errno;

    /// Converts seconds and nanoseconds since the Epoch, such as a time of `CLOCK_REALTIME` or of a
    /// file.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: `tv_nsec` is not in `0..1_000_000_000`.
    /// - `EOVERFLOW`: the time is before 1677-09-21 or after 2262-04-11, the limits of 64 bits of
    ///   nanoseconds. Times that the kernel returns for `CLOCK_REALTIME` are within them.
    ///
    /// # Examples
    ///
    /// ```
    /// use vdso_time::{ClockId, Errno, SystemTime, Timespec, clock_gettime};
    ///
    /// println!("{:?}", SystemTime::try_from(clock_gettime(ClockId::REALTIME)?)?);
    /// let year_3000 = Timespec { tv_sec: 32_503_680_000, tv_nsec: 0 };
    /// assert_eq!(SystemTime::try_from(year_3000), Err(Errno::EOVERFLOW));
    /// # Ok::<(), Errno>(())
    /// ```
    #[inline]
    fn try_from(time: Timespec) -> Result<Self, Errno> {
        time.checked_nanos().map(Self::from_nanos)
    }
}

/// Requires the feature `std`.
#[cfg(feature = "std")]
impl From<SystemTime> for std::time::SystemTime {
    /// Converts a time. Every time fits.
    fn from(time: SystemTime) -> Self {
        let distance = core::time::Duration::from_nanos(time.as_nanos().unsigned_abs());
        // 292 years fit on both sides of std's epoch.
        if time.as_nanos() < 0 { Self::UNIX_EPOCH - distance } else { Self::UNIX_EPOCH + distance }
    }
}

/// Requires the feature `std`.
#[cfg(feature = "std")]
impl From<SystemTime<RealtimeCoarse>> for std::time::SystemTime {
    /// Converts a time of `CLOCK_REALTIME_COARSE`. Every time fits.
    fn from(time: SystemTime<RealtimeCoarse>) -> Self {
        SystemTime::<Realtime>::from(time).into()
    }
}

/// Requires the feature `std`.
#[cfg(feature = "std")]
impl TryFrom<std::time::SystemTime> for SystemTime {
    type Error = Errno;

    /// Converts a time, such as that of a file.
    ///
    /// # Errors
    ///
    /// `EOVERFLOW`: the time is before 1677-09-21 or after 2262-04-11, the limits of 64 bits of
    /// nanoseconds.
    ///
    /// # Examples
    ///
    /// ```
    /// use vdso_time::SystemTime;
    ///
    /// let changed = std::fs::metadata("/proc/self/exe")?.modified()?;
    /// println!("{:?} ago", SystemTime::try_from(changed)?.elapsed());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    fn try_from(time: std::time::SystemTime) -> Result<Self, Errno> {
        let time = match time.duration_since(std::time::UNIX_EPOCH) {
            Ok(after) => Self::UNIX_EPOCH.checked_add(after),
            Err(before) => Self::UNIX_EPOCH.checked_sub(before.duration()),
        };
        time.ok_or(Errno::EOVERFLOW)
    }
}
