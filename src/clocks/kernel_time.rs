//! The nanoseconds of a monotonic time, as the kernel keeps them.

use core::time::Duration;

use crate::errno::Errno;
use crate::types::Timespec;

/// Nanoseconds since a clock's zero: `ktime_t`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct KernelTime(pub(super) i64);

impl KernelTime {
    pub(super) const MIN: Self = Self(i64::MIN);
    pub(super) const MAX: Self = Self(i64::MAX);

    /// Creates a time from the kernel's answer, which fits.
    #[inline]
    pub(super) const fn from_kernel(time: Timespec) -> Self {
        Self(time.ktime())
    }

    /// Creates a time from nanoseconds, or returns `None` if they do not fit.
    #[inline]
    const fn new(nanos: i128) -> Option<Self> {
        if nanos as i64 as i128 == nanos { Some(Self(nanos as i64)) } else { None }
    }

    #[inline]
    pub(super) fn from_timespec(time: Timespec) -> Result<Self, Errno> {
        time.subsec_nanos()?;
        Self::new(time.as_nanos()).ok_or(Errno::EOVERFLOW)
    }

    #[inline]
    pub(super) const fn timespec(self) -> Timespec {
        Timespec::from_nanos(self.0)
    }

    #[inline]
    pub(super) const fn checked_add(self, duration: Duration) -> Option<Self> {
        Self::new(self.0 as i128 + duration.as_nanos() as i128)
    }

    #[inline]
    pub(super) const fn checked_sub(self, duration: Duration) -> Option<Self> {
        Self::new(self.0 as i128 - duration.as_nanos() as i128)
    }
}
