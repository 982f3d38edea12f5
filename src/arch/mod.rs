//! The architectures as data: which symbols a vDSO has, under which names and versions, and which
//! system calls answer where it cannot. The tables are the same on every host.

#![allow(unsafe_code, reason = "the system call is assembly")]

pub(crate) mod aarch64;
mod abi;
#[cfg(all(vdso_time_absent, any(target_os = "linux", target_os = "android")))]
pub(crate) mod absent;
pub(crate) mod arm;
#[cfg(all(any(feature = "libc", vdso_time_absent), any(target_os = "linux", target_os = "android")))]
pub(crate) mod errno;
#[cfg(all(feature = "counter", not(vdso_time_absent), any(target_arch = "x86", target_arch = "x86_64")))]
pub(crate) mod tsc;
pub(crate) mod x86;
pub(crate) mod x86_64;

pub use abi::{Abi, Candidate, Discovery, Function, Quirk, Shape, Syscall};

/// The table of every first-class architecture, on every host.
///
/// ```
/// let names: Vec<_> = vdso_time::arch::ALL.iter().map(|abi| abi.name).collect();
/// assert_eq!(names, ["x86", "x86_64", "aarch64", "arm"]);
/// ```
pub const ALL: &[&Abi] = &[&x86::ABI, &x86_64::ABI, &aarch64::ABI, &arm::ABI];

// The one place that chooses: the module whose table and system call this build uses.
#[cfg(all(not(vdso_time_absent), target_arch = "aarch64"))]
pub(crate) use aarch64 as native;
#[cfg(all(vdso_time_absent, any(target_os = "linux", target_os = "android")))]
pub(crate) use absent as native;
#[cfg(all(not(vdso_time_absent), target_arch = "arm"))]
pub(crate) use arm as native;
#[cfg(all(not(vdso_time_absent), target_arch = "x86"))]
pub(crate) use x86 as native;
#[cfg(all(not(vdso_time_absent), target_arch = "x86_64"))]
pub(crate) use x86_64 as native;

/// The table that this build calls through; `None` where the calls go through libc (Linux on another
/// architecture, x32, ILP32, Miri) and on other systems.
///
/// ```
/// use vdso_time::arch;
///
/// if let Some(abi) = arch::NATIVE {
///     println!("{}: clock_gettime is system call {}", abi.name, abi.clock_gettime.syscalls[0].number);
/// }
/// ```
pub const NATIVE: Option<&Abi> = {
    #[cfg(not(vdso_time_absent))]
    let native = Some(&native::ABI);
    #[cfg(vdso_time_absent)]
    let native = None;
    native
};
