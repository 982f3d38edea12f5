//! The differences between the architectures.
//!
//! Each architecture has a table ([`Abi`]) of the symbols of its vDSO and of its system calls. The
//! tables are data. The crate contains all of them, whatever architecture it is compiled for,
//! because `Routes::of_image` accepts an image of any of these architectures.
//!
//! `native` makes the system calls. On most architectures this module is written in assembly, so it
//! contains code only for the architecture that the crate is compiled for.

#![allow(unsafe_code, reason = "the system call is assembly")]
#![allow(missing_docs, reason = "not part of the API")]

mod abi;
#[cfg(all(
    vdso_time_linux,
    any(feature = "libc", vdso_time_libc_fallback, target_arch = "powerpc64")
))]
pub(crate) mod libc_errno;
#[cfg(vdso_time_linux)]
pub(crate) mod native;
mod table;
mod targets;

pub use abi::{Abi, Candidate, Discovery, Entry, Quirk, Shape, Syscall};
pub use targets::TARGETS;

/// The table of every architecture.
pub const ALL: &[&Abi] = &[
    &table::x86::ABI,
    &table::x86_64::ABI,
    &table::aarch64::ABI,
    &table::arm::ABI,
    &table::riscv64::ABI,
    &table::s390x::ABI,
    &table::loongarch64::ABI,
    &table::powerpc64::ABI,
];

/// The table of the architecture that this build is for. `None` if the calls go through libc, and
/// on systems other than Linux.
#[cfg(not(vdso_time_libc_fallback))]
pub const NATIVE: Option<&Abi> = Some(&native::ABI);
#[cfg(vdso_time_libc_fallback)]
pub const NATIVE: Option<&Abi> = None;

/// The architecture whose vDSO this build calls, spelled as in `target_arch`.
///
/// It is `None` on systems other than Linux, and where every call goes through libc:
///
/// - on architectures other than x86, `x86_64`, aarch64, arm, riscv64, s390x, loongarch64 and
///   powerpc64;
/// - with the x32 and ILP32 ABIs;
/// - on big-endian powerpc64;
/// - in Miri;
/// - in programs that are built with LLVM's CFI or KCFI.
pub const ARCH: Option<&str> = match NATIVE {
    Some(abi) => Some(abi.name),
    None => None,
};
