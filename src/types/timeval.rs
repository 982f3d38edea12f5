//! [`Timeval`]: a time in seconds and microseconds.

use core::fmt;
use core::time::Duration;

use super::by_value::by_value;
use super::timespec::Timespec;
use crate::errno::Errno;

/// A time in seconds and microseconds, 64 bits each on every architecture.
///
/// The fields are public, as in C. As with a [`Timespec`], times are equal, and have the same hash,
/// if they are the same number of microseconds, even if `tv_usec` is out of its range.
///
/// ```
/// use vdso_time::Timeval;
///
/// let carried = Timeval { tv_sec: 0, tv_usec: 1_000_000 };
/// assert_eq!(carried, Timeval { tv_sec: 1, tv_usec: 0 });
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Timeval {
    /// Seconds.
    pub tv_sec: i64,
    /// Microseconds, `0..1_000_000`.
    pub tv_usec: i64,
}

impl Timeval {
    /// Converts a time, and rounds the nanoseconds down to microseconds.
    pub(crate) fn of(time: Timespec) -> Self {
        Self {
            tv_sec: time.tv_sec,
            tv_usec: time.tv_nsec / 1000,
        }
    }

    #[inline]
    const fn as_micros(self) -> i128 {
        self.tv_sec as i128 * 1_000_000 + self.tv_usec as i128
    }
}

by_value!(Timeval, as_micros);

impl TryFrom<Timeval> for Timespec {
    type Error = Errno;

    /// Converts a time.
    ///
    /// # Errors
    ///
    /// `EINVAL`: `tv_usec` is not in `0..1_000_000`.
    #[inline]
    fn try_from(time: Timeval) -> Result<Self, Errno> {
        match time.tv_usec {
            0..1_000_000 => Ok(Self {
                tv_sec: time.tv_sec,
                tv_nsec: time.tv_usec * 1000,
            }),
            _ => Err(Errno::EINVAL),
        }
    }
}

impl TryFrom<Timeval> for Duration {
    type Error = Errno;

    /// Converts a time that is not negative. The errors are the same as in the conversion of a
    /// [`Timespec`]: `EINVAL` if `tv_usec` is out of its range, and `EOVERFLOW` if the time is
    /// negative.
    #[inline]
    fn try_from(time: Timeval) -> Result<Self, Errno> {
        Timespec::try_from(time)?.try_into()
    }
}

impl fmt::Display for Timeval {
    /// Writes the seconds with six decimal places: `12.000345`, `-0.000001`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.as_micros() < 0 { "-" } else { "" };
        let micros = self.as_micros().unsigned_abs();
        write!(f, "{sign}{}.{:06}", micros / 1_000_000, micros % 1_000_000)
    }
}
