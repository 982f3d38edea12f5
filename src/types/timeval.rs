//! [`Timeval`]: a time in seconds and microseconds.

use core::fmt;
use core::time::Duration;

use super::timespec::Timespec;
use crate::errno::Errno;

/// A time in seconds and microseconds, 64 bits each on every architecture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(C)]
pub struct Timeval {
    /// Seconds.
    pub tv_sec: i64,
    /// Microseconds, `0..1_000_000`.
    pub tv_usec: i64,
}

impl Timeval {
    /// Cuts the nanoseconds off to microseconds.
    pub(crate) fn of(time: Timespec) -> Self {
        Self {
            tv_sec: time.tv_sec,
            tv_usec: time.tv_nsec / 1000,
        }
    }
}

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

    /// Converts a time that is not negative (else `EOVERFLOW`), with the errors of [`Timespec`]'s.
    #[inline]
    fn try_from(time: Timeval) -> Result<Self, Errno> {
        Timespec::try_from(time)?.try_into()
    }
}

impl fmt::Display for Timeval {
    /// Writes the seconds with six decimal places: `12.000345`, `-0.000001`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = i128::from(self.tv_sec) * 1_000_000 + i128::from(self.tv_usec);
        let (sign, micros) = (if micros < 0 { "-" } else { "" }, micros.unsigned_abs());
        write!(f, "{sign}{}.{:06}", micros / 1_000_000, micros % 1_000_000)
    }
}
