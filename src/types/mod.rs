//! The kernel's data types: clock ids, times, CPUs. The layouts are those of
//! include/uapi/linux/time_types.h.

mod clock_id;
mod cpu;
mod timespec;
mod timeval;

pub use clock_id::{ClockId, ParseClockIdError};
pub use cpu::Cpu;
pub use timespec::Timespec;
pub(crate) use timespec::Timespec32;
pub use timeval::Timeval;
