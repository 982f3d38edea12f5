//! What times convert to and from: the times of a coarse clock, `Timespec`, and std's `SystemTime`.
//!
//! A conversion that may not fit is a `TryFrom`, so that nothing becomes a wrong time silently.

#[cfg(feature = "std")]
use super::Realtime;
use super::{Instant, MonotonicCoarse, RealtimeCoarse, SystemTime};
use crate::errno::Errno;
use crate::types::Timespec;

/// A coarse time is a time of the same clock, at the last timer tick.
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

/// A coarse time is a time of the same clock, at the last timer tick.
impl From<SystemTime<RealtimeCoarse>> for SystemTime {
    /// Converts a time of `CLOCK_REALTIME_COARSE` to the same time of `CLOCK_REALTIME`.
    ///
    /// # Examples
    ///
    /// ```
    /// use vdso_time::{RealtimeCoarse, SystemTime, UNIX_EPOCH, WallClock};
    ///
    /// let stamp: SystemTime = RealtimeCoarse::now().into();
    /// println!("{} s since the Epoch", stamp.duration_since(UNIX_EPOCH)?.as_secs());
    /// # Ok::<(), vdso_time::SystemTimeError>(())
    /// ```
    #[inline]
    fn from(time: SystemTime<RealtimeCoarse>) -> Self {
        Self::from_nanos(time.as_nanos())
    }
}

/// A time in nanoseconds is one in seconds and nanoseconds, for the calls of the kernel that take
/// it.
impl<C> From<Instant<C>> for Timespec {
    /// Converts a time to the seconds and nanoseconds of its clock.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use vdso_time::{Instant, Timespec};
    ///
    /// let deadline = Timespec::from(Instant::now() + Duration::from_secs(5));
    /// assert!((0..1_000_000_000).contains(&deadline.tv_nsec));
    /// ```
    #[inline]
    fn from(time: Instant<C>) -> Self {
        Self::from_nanos(time.as_nanos())
    }
}

/// A time in nanoseconds is one in seconds and nanoseconds, for the calls of the kernel that take
/// it.
impl<C> From<SystemTime<C>> for Timespec {
    /// Converts a time to the seconds and nanoseconds of its clock, since 1970.
    ///
    /// # Examples
    ///
    /// ```
    /// use vdso_time::{SystemTime, Timespec};
    ///
    /// assert!(Timespec::from(SystemTime::now()).tv_sec > 1_700_000_000);
    /// ```
    #[inline]
    fn from(time: SystemTime<C>) -> Self {
        Self::from_nanos(time.as_nanos())
    }
}

/// What `clock_gettime(ClockId::REALTIME)` returned, or a file's time, as a [`SystemTime`].
impl TryFrom<Timespec> for SystemTime {
    type Error = Errno;

    /// Converts seconds and nanoseconds since 1970-01-01 00:00:00 UTC.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: `tv_nsec` is not in `0..1_000_000_000`.
    /// - `EOVERFLOW`: the time is before 1677-09-21 or after 2262-04-11, the ends of 64 bits of
    ///   nanoseconds. A time that the kernel returned for `CLOCK_REALTIME` is not.
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

/// Needs the feature `std`.
#[cfg(feature = "std")]
impl From<SystemTime> for std::time::SystemTime {
    /// Converts a time. Every one fits.
    ///
    /// # Examples
    ///
    /// ```
    /// let now = std::time::SystemTime::from(vdso_time::SystemTime::now());
    /// println!("{now:?}");
    /// ```
    fn from(time: SystemTime) -> Self {
        let distance = core::time::Duration::from_nanos(time.as_nanos().unsigned_abs());
        // 292 years fit on either side of std's epoch.
        if time.as_nanos() < 0 { Self::UNIX_EPOCH - distance } else { Self::UNIX_EPOCH + distance }
    }
}

/// Needs the feature `std`.
#[cfg(feature = "std")]
impl From<SystemTime<RealtimeCoarse>> for std::time::SystemTime {
    /// Converts a time of `CLOCK_REALTIME_COARSE`. Every one fits.
    ///
    /// # Examples
    ///
    /// ```
    /// use vdso_time::{RealtimeCoarse, WallClock};
    ///
    /// let now = std::time::SystemTime::from(RealtimeCoarse::now());
    /// println!("{now:?}");
    /// ```
    fn from(time: SystemTime<RealtimeCoarse>) -> Self {
        SystemTime::<Realtime>::from(time).into()
    }
}

/// Needs the feature `std`.
#[cfg(feature = "std")]
impl TryFrom<std::time::SystemTime> for SystemTime {
    type Error = Errno;

    /// Converts a time, such as a file's.
    ///
    /// # Errors
    ///
    /// `EOVERFLOW`: the time is before 1677-09-21 or after 2262-04-11, the ends of 64 bits of
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
