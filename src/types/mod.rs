//! The kernel's data types: clock ids, times, CPUs. The layouts are from
//! include/uapi/linux/time_types.h.

#![forbid(unsafe_code)]

mod by_value;
mod clock_id;
mod operators;
mod timespec;
mod timeval;

pub use clock_id::{ClockId, ParseClockIdError};
pub(crate) use operators::operators;
pub use timespec::Timespec;
pub(crate) use timespec::Timespec32;
pub use timeval::Timeval;

/// The CPU and the NUMA node on which a thread ran when it called getcpu(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Cpu {
    /// The CPU's number.
    pub cpu: u32,
    /// The number of the CPU's NUMA node.
    pub node: u32,
}
