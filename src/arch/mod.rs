//! The architecture that this build is for.
//!
//! The tables of all architectures are here too: which symbols a vDSO has, under which names and
//! versions, and which system calls answer where it cannot. They are the same on every host, but no part
//! of the stable API: [`routes`](crate::routes()) says what they come to.

#![allow(unsafe_code, reason = "the system call is assembly")]

pub(crate) mod aarch64;
pub(crate) mod abi;
pub(crate) mod arm;
#[cfg(all(not(vdso_time_libc_fallback), target_arch = "x86"))]
mod i386_entry;
#[cfg(all(
    feature = "counter",
    not(vdso_time_libc_fallback),
    any(target_arch = "x86", target_arch = "x86_64")
))]
pub(crate) mod tsc;
pub(crate) mod x86;
pub(crate) mod x86_64;

#[doc(hidden)]
pub use abi::{Abi, Candidate, Discovery, Function, Quirk, Shape, Syscall, TIME32_FIRST};

/// The table of every first-class architecture, on every host.
#[doc(hidden)]
pub const ALL: &[&Abi] = &[&x86::ABI, &x86_64::ABI, &aarch64::ABI, &arm::ABI];

// The one place that chooses: the module whose table and system call this build uses.
#[cfg(all(not(vdso_time_libc_fallback), target_arch = "aarch64"))]
pub(crate) use aarch64 as native;
#[cfg(all(not(vdso_time_libc_fallback), target_arch = "arm"))]
pub(crate) use arm as native;
#[cfg(all(not(vdso_time_libc_fallback), target_arch = "x86"))]
pub(crate) use x86 as native;
#[cfg(all(not(vdso_time_libc_fallback), target_arch = "x86_64"))]
pub(crate) use x86_64 as native;

#[cfg(all(not(vdso_time_libc_fallback), target_arch = "x86"))]
pub(crate) use i386_entry::set_entry;
/// Only i386's vDSO has a function that enters the kernel.
#[cfg(not(all(not(vdso_time_libc_fallback), target_arch = "x86")))]
pub(crate) fn set_entry(_find: impl FnOnce(&str, &str) -> Option<*mut ()>) {}

/// The table that this build calls through; `None` where the calls go through libc, and on other systems.
#[doc(hidden)]
pub const NATIVE: Option<&Abi> = {
    #[cfg(not(vdso_time_libc_fallback))]
    let native = Some(&native::ABI);
    #[cfg(vdso_time_libc_fallback)]
    let native = None;
    native
};

/// The architecture whose vDSO this build calls, spelled as in `target_arch`. `None` where every call goes
/// through libc (Linux on an architecture without a table, x32, ILP32, Miri), and on other systems.
///
/// ```
/// match vdso_time::arch::NAME {
///     Some(name) => println!("vDSO of {name}"),
///     None => println!("libc"),
/// }
/// ```
pub const NAME: Option<&str> = match NATIVE {
    Some(abi) => Some(abi.name),
    None => None,
};
