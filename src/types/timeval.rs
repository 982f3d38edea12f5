//! [`Timeval`]: a time in seconds and microseconds.

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

impl Timeval {
    /// Cuts the nanoseconds off to microseconds.
    pub(crate) fn of(time: Timespec) -> Self {
        Self { tv_sec: time.tv_sec, tv_usec: time.tv_nsec / 1000 }
    }
}
