//! The kernel's data types: clock ids, times, CPUs. The layouts are those of
//! include/uapi/linux/time_types.h.

mod clock_id;
mod timespec;

pub use clock_id::ClockId;
pub use timespec::Timespec;

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

/// The CPU and the NUMA node on which a thread ran when it called getcpu(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Cpu {
    /// The CPU's number.
    pub cpu: u32,
    /// The number of the CPU's NUMA node.
    pub node: u32,
}

/// `struct old_timespec32`, which the older clock calls of 32-bit architectures write.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Timespec32 {
    tv_sec: i32,
    tv_nsec: i32,
}

impl Timespec32 {
    /// Returns the time in 64 bits, or `EOVERFLOW` for negative seconds: they are those after
    /// January 2038, because no clock of the kernel has a time before its zero.
    pub(crate) fn widened(self) -> Result<Timespec, Errno> {
        if self.tv_sec < 0 {
            return Err(Errno::EOVERFLOW);
        }
        Ok(Timespec { tv_sec: self.tv_sec.into(), tv_nsec: self.tv_nsec.into() })
    }
}

/// Nanoseconds in a second.
pub(crate) const NANOS_PER_SEC: i64 = 1_000_000_000;

impl From<Timeval> for Timespec {
    fn from(time: Timeval) -> Self {
        Self { tv_sec: time.tv_sec, tv_nsec: time.tv_usec.wrapping_mul(1000) }
    }
}

impl From<Timespec> for Timeval {
    fn from(time: Timespec) -> Self {
        Self { tv_sec: time.tv_sec, tv_usec: time.tv_nsec / 1000 }
    }
}
