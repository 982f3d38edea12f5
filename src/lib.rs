#![doc = include_str!("../README.md")]
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(any(target_os = "linux", target_os = "android")),
    allow(dead_code, unreachable_pub, unused_imports, reason = "the clock calls are for Linux")
)]

#[cfg(any(feature = "std", test))]
extern crate std;

pub mod arch;
#[cfg(all(feature = "counter", any(target_os = "linux", target_os = "android")))]
pub mod counter;
pub mod elf;
mod errno;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod instant;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux;
mod types;

/// std's type, so that `use vdso_time::{Duration, Instant}` can replace the line for `std::time`.
#[doc(no_inline)]
pub use core::time::Duration;
pub use errno::Errno;
pub use types::{ClockId, Cpu, Timespec, Timeval};

#[cfg(all(feature = "counter", any(target_os = "linux", target_os = "android")))]
pub use counter::Counter;
#[cfg(any(target_os = "linux", target_os = "android"))]
pub use instant::{
    Boottime, Clock, Instant, KernelClock, Monotonic, MonotonicCoarse, MonotonicRaw, ProcessCpuTime,
    Realtime, RealtimeCoarse, SystemTime, SystemTimeError, Tai, ThreadCpuTime, UNIX_EPOCH, WallClock,
};
#[cfg(any(target_os = "linux", target_os = "android"))]
pub use linux::FallbackReason;
#[cfg(any(target_os = "linux", target_os = "android"))]
pub use linux::calls::{clock_getres, clock_gettime, getcpu, gettimeofday, time, try_time};
#[cfg(any(target_os = "linux", target_os = "android"))]
pub use linux::routes::{Route, Routes, routes, warm_up};
#[cfg(any(target_os = "linux", target_os = "android"))]
pub use linux::vdso::{self, init};

/// The same functions, answered by the kernel without the vDSO.
///
/// A function need not make the system call of its own name. `time` and `gettimeofday` call
/// clock_gettime(2) on architectures whose own calls are missing or end in January 2038.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub mod syscall {
    pub use crate::linux::syscall::{clock_getres, clock_gettime, getcpu, gettimeofday, time};
}
