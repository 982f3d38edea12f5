//! [`Timespec`]: a time in seconds and nanoseconds.

use core::fmt;
use core::time::Duration;

use super::by_value::by_value;
use super::operators::operators;
use crate::errno::Errno;

/// Nanoseconds in a second.
const NANOS_PER_SEC: i64 = 1_000_000_000;

/// A time in seconds and nanoseconds, 64 bits each on every architecture.
///
/// A `Timespec` has the layout of `struct __kernel_timespec` (include/uapi/linux/time_types.h).
/// Unlike [`Instant`] and [`SystemTime`], the type does not say which clock the time is from.
///
/// There is no conversion to `libc::timespec`, because libc's type would then be part of this
/// crate's API, and a new major version of libc would break the API. Convert the two fields
/// instead.
///
/// The fields are public, as in C, so `tv_nsec` can be out of its range. Comparisons then carry the
/// nanoseconds into the seconds: two times are equal, and have the same hash, if they are the same
/// number of nanoseconds.
///
/// [`Instant`]: crate::Instant
/// [`SystemTime`]: crate::SystemTime
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use vdso_time::{ClockId, clock_gettime};
///
/// let start = clock_gettime(ClockId::MONOTONIC)?;
/// println!("{start} s, {:?}", Duration::try_from(start)?);
/// let end = clock_gettime(ClockId::MONOTONIC)?;
/// assert!(end.checked_duration_since(start).is_some());
/// # Ok::<(), vdso_time::Errno>(())
/// ```
///
/// ```
/// use vdso_time::Timespec;
///
/// let carried = Timespec { tv_sec: 0, tv_nsec: 1_000_000_000 };
/// assert_eq!(carried, Timespec { tv_sec: 1, tv_nsec: 0 });
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Timespec {
    /// Seconds, negative before the clock's zero.
    pub tv_sec: i64,
    /// Nanoseconds after `tv_sec`, `0..1_000_000_000`.
    pub tv_nsec: i64,
}

impl Timespec {
    /// Creates a time from nanoseconds. -1 becomes 999,999,999 ns after second -1.
    #[inline]
    #[must_use]
    pub const fn from_nanos(nanos: i64) -> Self {
        Self {
            tv_sec: nanos.div_euclid(NANOS_PER_SEC),
            tv_nsec: nanos.rem_euclid(NANOS_PER_SEC),
        }
    }

    /// Returns the time in nanoseconds, exactly.
    #[inline]
    #[must_use]
    pub const fn as_nanos(self) -> i128 {
        self.tv_sec as i128 * NANOS_PER_SEC as i128 + self.tv_nsec as i128
    }

    /// Returns the time `duration` later, or `None` if that time does not fit in a `Timespec`.
    #[inline]
    #[must_use]
    pub const fn checked_add(self, duration: Duration) -> Option<Self> {
        Self::from_all_nanos(self.as_nanos() + duration.as_nanos() as i128)
    }

    /// Returns the time `duration` earlier, or `None` if that time does not fit in a `Timespec`.
    #[inline]
    #[must_use]
    pub const fn checked_sub(self, duration: Duration) -> Option<Self> {
        Self::from_all_nanos(self.as_nanos() - duration.as_nanos() as i128)
    }

    /// Returns the duration since `earlier`, or `None` if `earlier` is later.
    ///
    /// The result is also `None` if `earlier` is 2^64 seconds or more before this time. That is
    /// possible only if the `tv_nsec` of one of the two times is out of its range.
    #[inline]
    #[must_use]
    pub const fn checked_duration_since(self, earlier: Self) -> Option<Duration> {
        let nanos = self.as_nanos() - earlier.as_nanos();
        if nanos < 0 {
            return None;
        }
        let seconds = nanos / NANOS_PER_SEC as i128;
        if seconds > u64::MAX as i128 {
            return None;
        }
        let below = (nanos % NANOS_PER_SEC as i128) as u32;
        // `below` is always less than `NANOS_PER_SEC`. On 32-bit targets, the compiler sees this
        // only if the `%` is repeated here. With the second `%`, the compiler removes the panic of
        // `Duration::new`.
        Some(Duration::new(seconds as u64, below % NANOS_PER_SEC as u32))
    }

    /// Creates a time from nanoseconds, or returns `None` if its seconds do not fit.
    #[inline]
    pub(crate) const fn from_all_nanos(nanos: i128) -> Option<Self> {
        // If a caller passes a number that was converted from 64 bits, this test always succeeds,
        // so the compiler removes the test and the 128-bit division below.
        if nanos as i64 as i128 == nanos {
            return Some(Self::from_nanos(nanos as i64));
        }
        let seconds = nanos.div_euclid(NANOS_PER_SEC as i128);
        if seconds as i64 as i128 != seconds {
            return None;
        }
        Some(Self {
            tv_sec: seconds as i64,
            tv_nsec: nanos.rem_euclid(NANOS_PER_SEC as i128) as i64,
        })
    }

    /// Returns the nanoseconds of a time that the kernel returned. They always fit in 64 bits
    /// (`ktime_t`), so this function needs no 128-bit arithmetic and is cheaper than
    /// [`as_nanos`](Self::as_nanos).
    #[inline]
    pub(crate) const fn ktime(self) -> i64 {
        self.tv_sec
            .wrapping_mul(NANOS_PER_SEC)
            .wrapping_add(self.tv_nsec)
    }

    /// Returns `tv_nsec`. If it is negative or not less than a second, returns `EINVAL`, as the
    /// kernel does (`timespec64_valid`).
    pub(crate) fn subsec_nanos(self) -> Result<u32, Errno> {
        match u32::try_from(self.tv_nsec) {
            Ok(nanos) if self.tv_nsec < NANOS_PER_SEC => Ok(nanos),
            _ => Err(Errno::EINVAL),
        }
    }
}

operators!([] Timespec, "timespec");
by_value!(Timespec, as_nanos);

impl TryFrom<Timespec> for Duration {
    type Error = Errno;

    /// Converts a time that is not negative.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: `tv_nsec` is not in `0..1_000_000_000`.
    /// - `EOVERFLOW`: the time is negative.
    #[inline]
    fn try_from(time: Timespec) -> Result<Self, Errno> {
        let nanos = time.subsec_nanos()?;
        let seconds = u64::try_from(time.tv_sec).map_err(|_| Errno::EOVERFLOW)?;
        Ok(Self::new(seconds, nanos))
    }
}

impl TryFrom<Duration> for Timespec {
    type Error = Errno;

    /// Converts a duration.
    ///
    /// # Errors
    ///
    /// `EOVERFLOW`: the duration is longer than [`i64::MAX`] seconds.
    #[inline]
    fn try_from(duration: Duration) -> Result<Self, Errno> {
        let tv_sec = i64::try_from(duration.as_secs()).map_err(|_| Errno::EOVERFLOW)?;
        Ok(Self {
            tv_sec,
            tv_nsec: duration.subsec_nanos().into(),
        })
    }
}

impl fmt::Display for Timespec {
    /// Writes the seconds with nine decimal places: `12.000000345`, `-0.000000001`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.as_nanos() < 0 { "-" } else { "" };
        let nanos = self.as_nanos().unsigned_abs();
        let per_second = u128::from(NANOS_PER_SEC.unsigned_abs());
        write!(f, "{sign}{}.{:09}", nanos / per_second, nanos % per_second)
    }
}

/// `struct old_timespec32`, which the older clock calls of 32-bit architectures write.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Timespec32 {
    tv_sec: i32,
    tv_nsec: i32,
}

impl Timespec32 {
    /// Returns the time in 64 bits, or `EOVERFLOW` if the seconds are negative. No clock of the
    /// system has a time before its zero, so negative seconds mean that the 32-bit seconds have
    /// overflowed: it is after January 2038.
    pub(crate) fn widened(self) -> Result<Timespec, Errno> {
        if self.tv_sec < 0 {
            return Err(Errno::EOVERFLOW);
        }
        Ok(Timespec {
            tv_sec: self.tv_sec.into(),
            tv_nsec: self.tv_nsec.into(),
        })
    }
}
