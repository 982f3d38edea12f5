//! [`Timeval`]: a time in seconds and microseconds, and its conversions.

use super::timespec::Timespec;

/// A time in seconds and microseconds, 64 bits each on every architecture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(C)]
pub struct Timeval {
    /// Seconds.
    pub tv_sec: i64,
    /// Microseconds, `0..1_000_000`.
    pub tv_usec: i64,
}

impl From<Timespec> for Timeval {
    /// Cuts the nanoseconds off to microseconds.
    fn from(time: Timespec) -> Self {
        Self { tv_sec: time.tv_sec, tv_usec: time.tv_nsec / 1000 }
    }
}

impl From<Timeval> for Timespec {
    /// Converts exactly. A `tv_usec` that is not in `0..1_000_000` may wrap.
    fn from(time: Timeval) -> Self {
        Self { tv_sec: time.tv_sec, tv_nsec: time.tv_usec.wrapping_mul(1000) }
    }
}
