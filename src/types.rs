//! The kernel's data types: clock ids, times, CPUs. The layouts are those of
//! include/uapi/linux/time_types.h.

mod clock_id;
mod timespec;

pub use clock_id::ClockId;
pub use timespec::Timespec;

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

/// `struct old_timespec32`, which the first clock calls of 32-bit architectures write. It ends in
/// January 2038.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Timespec32 {
    pub(crate) tv_sec: i32,
    pub(crate) tv_nsec: i32,
}

/// `struct old_timeval32`, which gettimeofday of 32-bit architectures writes. It ends in January
/// 2038.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Timeval32 {
    pub(crate) tv_sec: i32,
    pub(crate) tv_usec: i32,
}

/// Nanoseconds in a second.
pub(crate) const NANOS_PER_SEC: i64 = 1_000_000_000;

impl From<Timespec32> for Timespec {
    fn from(time: Timespec32) -> Self {
        Self { tv_sec: time.tv_sec.into(), tv_nsec: time.tv_nsec.into() }
    }
}

impl From<Timeval> for Timespec {
    fn from(time: Timeval) -> Self {
        Self { tv_sec: time.tv_sec, tv_nsec: time.tv_usec.wrapping_mul(1000) }
    }
}

impl From<Timeval32> for Timeval {
    fn from(time: Timeval32) -> Self {
        Self { tv_sec: time.tv_sec.into(), tv_usec: time.tv_usec.into() }
    }
}

impl From<Timespec> for Timeval {
    fn from(time: Timespec) -> Self {
        Self { tv_sec: time.tv_sec, tv_usec: time.tv_nsec / 1000 }
    }
}
