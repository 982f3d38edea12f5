//! A time in seconds and nanoseconds, and what it converts to.

use core::fmt;
use core::ops::Sub;
use core::time::Duration;

use super::NANOS_PER_SEC;
use crate::errno::Errno;

/// A time in seconds and nanoseconds, 64 bits each on every architecture.
///
/// The layout is that of `struct __kernel_timespec` (include/uapi/linux/time_types.h). The clock it
/// is a time of is not part of it; [`Instant`] and [`SystemTime`] are times that know their clock.
///
/// [`Instant`]: crate::Instant
/// [`SystemTime`]: crate::SystemTime
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use vdso_time::{ClockId, Timespec, clock_gettime};
///
/// let start = clock_gettime(ClockId::MONOTONIC)?;
/// assert!((0..1_000_000_000).contains(&start.tv_nsec));
/// let taken: Timespec = clock_gettime(ClockId::MONOTONIC)? - start;
/// println!("{taken} s, {:?}", Duration::try_from(taken)?);
/// # Ok::<(), vdso_time::Errno>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(C)]
pub struct Timespec {
    /// Seconds. They are negative before the clock's zero.
    pub tv_sec: i64,
    /// Nanoseconds after `tv_sec`, `0..1_000_000_000`.
    pub tv_nsec: i64,
}

impl Timespec {
    /// Creates a time from nanoseconds.
    ///
    /// # Examples
    ///
    /// ```
    /// use vdso_time::Timespec;
    ///
    /// assert_eq!(Timespec::from_nanos(2_000_000_005), Timespec { tv_sec: 2, tv_nsec: 5 });
    /// assert_eq!(Timespec::from_nanos(-1), Timespec { tv_sec: -1, tv_nsec: 999_999_999 });
    /// ```
    #[inline]
    #[must_use]
    pub const fn from_nanos(nanos: i64) -> Self {
        Self { tv_sec: nanos.div_euclid(NANOS_PER_SEC), tv_nsec: nanos.rem_euclid(NANOS_PER_SEC) }
    }

    /// Returns the time in nanoseconds.
    ///
    /// 64 bits hold 292 years before and after the clock's zero. A time outside of them becomes
    /// [`i64::MIN`] or [`i64::MAX`]. To get an error instead, convert with `SystemTime::try_from`.
    /// The kernel's own clocks always fit: it keeps them in 64 bits of nanoseconds itself
    /// (`ktime_t`, include/linux/ktime.h).
    ///
    /// # Examples
    ///
    /// ```
    /// use vdso_time::Timespec;
    ///
    /// assert_eq!(Timespec { tv_sec: 2, tv_nsec: 5 }.as_nanos(), 2_000_000_005);
    /// assert_eq!(Timespec { tv_sec: i64::MAX, tv_nsec: 0 }.as_nanos(), i64::MAX);
    /// ```
    #[must_use]
    pub const fn as_nanos(self) -> i64 {
        match self.total_nanos() {
            nanos if nanos > i64::MAX as i128 => i64::MAX,
            nanos if nanos < i64::MIN as i128 => i64::MIN,
            nanos => nanos as i64,
        }
    }

    /// The same for a time that the kernel made: it keeps its clocks in 64 bits of nanoseconds
    /// itself (`ktime_t`), so nothing saturates, and nothing need be tested.
    #[inline]
    pub(crate) const fn ktime(self) -> i64 {
        self.tv_sec.wrapping_mul(NANOS_PER_SEC).wrapping_add(self.tv_nsec)
    }

    /// Returns the time in nanoseconds, if they fit and the time is well-formed.
    pub(crate) fn checked_nanos(self) -> Result<i64, Errno> {
        self.subsec_nanos()?;
        i64::try_from(self.total_nanos()).map_err(|_| Errno::EOVERFLOW)
    }

    /// Returns `tv_nsec`. `EINVAL`, as from the kernel (`timespec64_valid`), unless it is part of a
    /// second.
    fn subsec_nanos(self) -> Result<u32, Errno> {
        match u32::try_from(self.tv_nsec) {
            Ok(nanos) if self.tv_nsec < NANOS_PER_SEC => Ok(nanos),
            _ => Err(Errno::EINVAL),
        }
    }

    const fn total_nanos(self) -> i128 {
        self.tv_sec as i128 * NANOS_PER_SEC as i128 + self.tv_nsec as i128
    }

    /// The seconds, and nanoseconds that are part of a second, whatever `tv_nsec` is.
    fn carried(self) -> (i128, i64) {
        let carry = self.tv_nsec.div_euclid(NANOS_PER_SEC);
        (i128::from(self.tv_sec) + i128::from(carry), self.tv_nsec.rem_euclid(NANOS_PER_SEC))
    }
}

impl Sub for Timespec {
    type Output = Self;

    /// Returns how much later this is than `earlier`; negative if it is not later.
    ///
    /// A difference that 64 bits of seconds cannot hold becomes the first or the last that they
    /// can.
    ///
    /// # Examples
    ///
    /// ```
    /// use vdso_time::Timespec;
    ///
    /// let (one, half) = (Timespec { tv_sec: 1, tv_nsec: 0 }, Timespec::from_nanos(500_000_000));
    /// assert_eq!(one - half, half);
    /// assert_eq!((half - one).as_nanos(), -500_000_000);
    /// ```
    #[inline]
    fn sub(self, earlier: Self) -> Self {
        let ((seconds, nanos), (from, from_nanos)) = (self.carried(), earlier.carried());
        let seconds = seconds - from - i128::from(nanos < from_nanos);
        match i64::try_from(seconds) {
            Ok(tv_sec) => Self { tv_sec, tv_nsec: (nanos - from_nanos).rem_euclid(NANOS_PER_SEC) },
            Err(_) if seconds < 0 => Self { tv_sec: i64::MIN, tv_nsec: 0 },
            Err(_) => Self { tv_sec: i64::MAX, tv_nsec: NANOS_PER_SEC - 1 },
        }
    }
}

impl TryFrom<Timespec> for Duration {
    type Error = Errno;

    /// Converts a time, or a difference of two, that is not negative.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: `tv_nsec` is not in `0..1_000_000_000`.
    /// - `EOVERFLOW`: the time is negative.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use vdso_time::{Errno, Timespec};
    ///
    /// let time = Timespec { tv_sec: 2, tv_nsec: 5 };
    /// assert_eq!(Duration::try_from(time), Ok(Duration::new(2, 5)));
    /// assert_eq!(Duration::try_from(Timespec::from_nanos(-1)), Err(Errno::EOVERFLOW));
    /// ```
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
    /// `EOVERFLOW`: it is longer than [`i64::MAX`] seconds.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use vdso_time::{Errno, Timespec};
    ///
    /// let timeout = Timespec::try_from(Duration::from_millis(1500))?;
    /// assert_eq!(timeout, Timespec { tv_sec: 1, tv_nsec: 500_000_000 });
    /// assert_eq!(Timespec::try_from(Duration::MAX), Err(Errno::EOVERFLOW));
    /// # Ok::<(), Errno>(())
    /// ```
    #[inline]
    fn try_from(duration: Duration) -> Result<Self, Errno> {
        let tv_sec = i64::try_from(duration.as_secs()).map_err(|_| Errno::EOVERFLOW)?;
        Ok(Self { tv_sec, tv_nsec: duration.subsec_nanos().into() })
    }
}

impl fmt::Display for Timespec {
    /// Writes the seconds, with every digit of the nanoseconds: `12.000000345`, `-0.000000001`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.total_nanos();
        let (sign, nanos) = (if nanos < 0 { "-" } else { "" }, nanos.unsigned_abs());
        let per_second = u128::from(NANOS_PER_SEC.unsigned_abs());
        write!(f, "{sign}{}.{:09}", nanos / per_second, nanos % per_second)
    }
}
