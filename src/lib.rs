//! Reads the Linux clock for the price of a function call.
//!
//! The kernel maps a small ELF image, the vDSO, into every process. Its functions read the clock
//! without a system call. This crate finds them, keeps a pointer to each, and makes the system call
//! where the vDSO cannot answer. A call allocates nothing and takes no lock, no code runs before
//! `main`, and the crate can be built without libc.
//!
//! ```
//! let start = vdso_time::Instant::now();
//! println!("{} s since the Epoch", vdso_time::time());
//! println!("{:?}", start.elapsed());
//! ```
//!
//! # Which clock to use
//!
//! | need | call |
//! |---|---|
//! | Unix seconds at the last timer tick, for a log line | [`time()`] |
//! | a wall-clock time stamp of the last timer tick | [`RealtimeCoarse::now()`] |
//! | a wall-clock time stamp to the nanosecond | [`SystemTime::now()`] |
//! | an interval | [`Instant::now()`] |
//! | an interval that counts suspended time | [`Boottime::now()`] |
//! | many intervals, measured with the CPU's counter | the package [`vdso-time-counter`] |
//! | any clock of clock_gettime(2) | [`clock_gettime()`] |
//! | the time of a clock of your own, as in a test | [`MonotonicClock`], [`WallClock`] |
//! | a clock that is chosen at run time | [`InstantSource`], [`SystemTimeSource`] |
//!
//! [`routes()`] reports for each function whether the vDSO answers and, if not, why. [`warm_up()`]
//! prepares a program for a sandbox. [`vdso`] and [`elf`] give access to the image itself.
//!
//! # Errors and panics
//!
//! If the kernel has the clock, a read fails only in these cases:
//!
//! - The vDSO cannot answer, and a sandbox denies the system call.
//! - The clock is a wall clock, it is after January 2038, and only 32-bit calls are available: on
//!   32-bit Android, on a kernel that has only 32-bit calls, or where calls go through a libc with
//!   a 32-bit `time_t`.
//! - The clock belongs to a device ([`ClockId::from_fd`]), and the device's driver returns an
//!   error.
//!
//! If a read fails, `now()` and `elapsed()` panic, as std's do; [`Instant::try_now()`] returns the
//! error, and [`time()`] returns -1.
//!
//! # Features
//!
//! | feature | default | what it does |
//! |---|---|---|
//! | `libc` | yes | finds the vDSO with getauxval(3); without it, the crate needs no libc (1) |
//! | `std` | no | converts from and to types of std; on other systems, reads std's clocks (2) |
//!
//! (1) Except on platforms where calls go through libc, as listed below.
//!
//! (2) The types are `Instant`, `SystemTime`, [`io::Error`] and [`BorrowedFd`].
//!
//! # Platforms
//!
//! On Linux and Android, this crate calls the vDSO on x86_64, i686, aarch64, arm, riscv64, s390x,
//! loongarch64 and powerpc64le. On powerpc64le, the crate makes its system calls through libc.
//!
//! On Linux and Android on all other architectures, every call goes through libc. The same is true
//! of a few special builds, which the documentation of [`ARCH`] lists. Where every call goes
//! through libc, [`ARCH`] is `None`.
//!
//! On other systems (macOS, Windows, WASI and more) the same functions read std's clocks if the
//! feature `std` is on, so a library can depend on this crate on every system. `clock_gettime`
//! returns `EINVAL` for a clock that std lacks. `clock_getres` and `getcpu` return `ENOSYS`, and so
//! does every read on wasm32-unknown-unknown. `vdso`, `syscall`, `read_cost`, `explain` and the
//! types of clocks that std lacks exist only on Linux.
//!
//! On such a system without the feature `std`, and on targets without an operating system, the
//! crate cannot read a clock, but its types and traits still exist. So a library that gets the time
//! from its caller can keep this time in an [`Instant`]. To do this, the library implements
//! [`MonotonicClock`] for a clock of its own.
//!
//! [`vdso-time-counter`]: https://docs.rs/vdso-time-counter
//! [`io::Error`]: https://doc.rust-lang.org/std/io/struct.Error.html
//! [`BorrowedFd`]: https://doc.rust-lang.org/std/os/fd/struct.BorrowedFd.html

#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
// The cfg flags that build.rs sets mean nothing to a reader of the documentation, so docs.rs shows
// the operating systems instead.
#![cfg_attr(
    docsrs,
    doc(auto_cfg(hide(vdso_time_clock, vdso_time_libc_fallback, vdso_time_linux)))
)]
#![cfg_attr(
    any(vdso_time_libc_fallback, not(vdso_time_linux)),
    allow(dead_code, unused_imports, reason = "most of the code calls the vDSO")
)]

#[cfg(any(feature = "std", test))]
extern crate std;

#[cfg(all(doctest, vdso_time_linux))]
#[doc = include_str!("../README.md")]
struct Readme;

mod arch;
#[cfg(vdso_time_linux)]
mod cause;
mod choice;
mod clocks;
pub mod elf;
mod errno;
#[cfg(vdso_time_linux)]
mod process;
#[cfg(vdso_time_linux)]
mod read_cost;
mod routes;
#[cfg(vdso_time_clock)]
mod sys;
mod types;

pub use arch::ARCH;
pub use choice::{FallbackReason, LocateError};
/// The types of `std::time`, so that a line like `use vdso_time::{Duration, Instant}` can replace
/// the one that imports them from std.
#[doc(no_inline)]
pub use core::time::{Duration, TryFromFloatSecsError};
pub use errno::Errno;
pub use routes::{Route, Routes};
pub use types::{ClockId, Cpu, ParseClockIdError, Timespec, Timeval};

pub use clocks::{
    Instant, InstantSource, Monotonic, MonotonicClock, MonotonicCoarse, Realtime, RealtimeCoarse,
    SameScale, SystemTime, SystemTimeError, SystemTimeSource, UNIX_EPOCH, WallClock,
};
#[cfg(vdso_time_clock)]
pub use sys::{
    calls::{clock_getres, clock_gettime, getcpu, gettimeofday, time, try_time},
    routes, warm_up,
};
#[cfg(vdso_time_linux)]
#[cfg_attr(docsrs, doc(cfg(any(target_os = "linux", target_os = "android"))))]
pub use {
    cause::{Cause, explain},
    clocks::{Boottime, MonotonicRaw, ProcessCpuTime, Tai, ThreadCpuTime},
    process::vdso,
    read_cost::{ReadCost, read_cost},
};

/// The crate's functions, but each makes a system call instead of calling the vDSO.
///
/// `try_time` makes the system call clock_gettime(2), because time(2) does not exist on every
/// architecture. On 32-bit architectures, `gettimeofday` also tries clock_gettime(2) first, because
/// the seconds of gettimeofday(2) overflow there in January 2038. On 32-bit Android, it makes only
/// gettimeofday(2), because Android's seccomp filter can kill a process for the 64-bit
/// clock_gettime(2).
///
/// On i386, a system call enters the kernel through the vDSO's code, once the vDSO has been found,
/// for example by [`warm_up`]. Until then it is `int 0x80`, which takes longer. Where every call
/// goes through libc, these functions call libc, which may answer from the vDSO.
///
/// Each function of this module returns a `Result`. There is no `syscall::time()`, because `time()`
/// returns a number and cannot return an error:
///
/// ```
/// let seconds = vdso_time::syscall::try_time()?;
/// assert!(seconds > 1_700_000_000);
/// # Ok::<(), vdso_time::Errno>(())
/// ```
#[cfg(vdso_time_linux)]
#[cfg_attr(docsrs, doc(cfg(any(target_os = "linux", target_os = "android"))))]
pub mod syscall {
    pub use crate::sys::syscall::{clock_getres, clock_gettime, getcpu, gettimeofday, try_time};
}

/// Items for vdso-time-counter and for the tests. They can change in any version.
#[doc(hidden)]
#[allow(
    missing_docs,
    clippy::missing_errors_doc,
    reason = "not part of the API"
)]
pub mod __private {
    pub use crate::arch::{
        ALL, Abi, Candidate, Discovery, Entry, NATIVE, Quirk, Shape, Syscall, TARGETS,
    };

    /// Parses an image that begins with these bytes, as a first call does.
    pub fn parse_beginning(bytes: &[u8]) -> Result<crate::elf::Image<'_>, crate::elf::ParseError> {
        crate::elf::Image::parse_beginning(bytes)
    }

    #[cfg(vdso_time_linux)]
    pub use crate::{
        arch::native::checked, process::auxv::value as auxval, process::kernel::read_file,
        read_cost::compare,
    };
}
