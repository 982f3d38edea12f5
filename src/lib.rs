//! Reads the Linux clock for the price of a function call.
//!
//! The kernel maps a small ELF image, the vDSO, into every process. Its functions read the clock
//! without a system call. This crate finds them, keeps a pointer to each, and makes the system call
//! where the vDSO cannot answer. It allocates nothing, takes no lock, starts nothing before `main`,
//! and needs no libc.
//!
//! ```
//! # #[cfg(any(target_os = "linux", target_os = "android"))] {
//! let start = vdso_time::Instant::now();
//! println!("{} s since the Epoch", vdso_time::time());
//! println!("{:?}", start.elapsed());
//! # }
//! ```
//!
//! # Which clock do I want?
//!
//! | need | call |
//! |---|---|
//! | the second, for a log line or an expiry date | [`time()`] |
//! | a wall-clock time stamp to the timer tick | [`RealtimeCoarse::now()`](Clock::now) |
//! | a wall-clock time stamp to the nanosecond | [`SystemTime::now()`] |
//! | an interval | [`Instant::now()`] |
//! | an interval that counts suspended time | [`Boottime::now()`](Boottime) |
#![cfg_attr(feature = "counter", doc = "| many intervals, on the CPU's counter | [`counter::monotonic()`] |")]
//! | any clock of clock_gettime(2) | [`clock_gettime()`] |
//! | the time of a clock of your own, in tests | [`Clock`] |
//!
//! [`routes()`] reports whether the vDSO answers, and why not. [`warm_up()`] makes the first call
//! before a sandbox. [`vdso`] and [`elf`] give access to the image itself.
//!
//! # Errors and panics
//!
//! A clock call fails only if the vDSO cannot answer and a sandbox denies the system call.
//! [`Instant::now()`], [`Instant::elapsed()`] and their likes panic then, as std's do;
//! [`Instant::try_now()`] returns the error. [`time()`] returns -1.
//!
//! # Features
//!
//! | feature | default | what it does |
//! |---|---|---|
//! | `libc` | yes | finds the vDSO by getauxval(3); without it the crate links nothing else |
//! | `counter` | no | the clock on the CPU's counter |
//! | `std` | no | conversions to and from std's times and errors |
//!
//! # Platforms
//!
//! Linux and Android on x86_64, i686, aarch64, arm, riscv64, s390x, loongarch64 and powerpc64le call
//! the vDSO. powerpc64le makes system calls through libc. On other architectures of Linux every call
//! goes through libc. On other systems only [`elf`] and the plain types exist.

#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(any(target_os = "linux", target_os = "android")),
    allow(dead_code, unreachable_pub, unused_imports, reason = "the clock calls are for Linux")
)]

#[cfg(any(feature = "std", test))]
extern crate std;

#[cfg(all(doctest, any(target_os = "linux", target_os = "android")))]
#[doc = include_str!("../README.md")]
struct Readme;

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
pub use linux::calls::{clock_getres, clock_gettime, cpu, getcpu, gettimeofday, time, try_time};
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
