//! The architecture that this build is for.
//!
//! Each architecture has a file: a table of the symbols and system calls that answer the functions,
//! and the system call in assembly. The tables are data, so every host has all of them. They are
//! not part of the stable API; [`routes`](crate::routes()) reports what they lead to.

#![allow(unsafe_code, reason = "the system call is assembly")]

#[allow(missing_docs, reason = "not part of the stable API")]
pub(crate) mod abi;
#[cfg(not(vdso_time_libc_fallback))]
mod assembly;
mod data;
#[cfg(all(target_arch = "x86", not(vdso_time_libc_fallback)))]
mod i386_entry;
#[cfg(all(vdso_time_linux, any(feature = "libc", vdso_time_libc_fallback, target_arch = "powerpc64")))]
pub(crate) mod libc_errno;

#[doc(hidden)]
pub use abi::{Abi, Candidate, Discovery, Function, Quirk, Shape, Syscall, TIME32_FIRST};

#[cfg(any(vdso_time_libc_fallback, target_arch = "powerpc64"))]
pub(crate) mod without_assembly;

/// Declares the module of each line of the list. The line of this target names the module `native`.
///
/// `cargo fmt` does not see these modules; `rustfmt src/arch/*.rs` formats them.
macro_rules! architectures {
    ($($module:ident: $arch:literal, $width:literal, $target:literal;)+) => {
        $(
            pub(crate) mod $module;
            #[cfg(all(target_arch = $arch, target_pointer_width = $width, not(vdso_time_libc_fallback)))]
            pub(crate) use $module as native;
        )+

        /// The table of every architecture, those of the list first.
        #[doc(hidden)]
        pub const ALL: &[&Abi] = &[
            $(&$module::ABI,)+
            &data::MIPS, &data::MIPS64, &data::RISCV32, &data::SPARC64, &data::X32,
        ];

        /// The `target_arch`, the `target_pointer_width` and a target of every architecture.
        #[doc(hidden)]
        pub const TARGETS: &[[&str; 3]] = &[$([$arch, $width, $target]),+];
    };
}
include!("list.rs");

#[cfg(all(target_arch = "x86", not(vdso_time_libc_fallback)))]
pub(crate) use i386_entry::set_entry;
/// Does nothing: only i386's vDSO has a function that enters the kernel.
#[cfg(not(all(target_arch = "x86", not(vdso_time_libc_fallback))))]
pub(crate) fn set_entry(_find: impl FnOnce(&str, &str) -> Option<*mut ()>) {}

/// The table that this build uses. `None` if the calls go through libc, and on other systems.
#[doc(hidden)]
pub const NATIVE: Option<&Abi> = {
    #[cfg(not(vdso_time_libc_fallback))]
    let native = Some(&native::ABI);
    #[cfg(vdso_time_libc_fallback)]
    let native = None;
    native
};

/// The architecture whose vDSO this build calls, spelled as in `target_arch`.
///
/// It is `None` on other systems, and where every call goes through libc: on architectures of Linux
/// that are not in the list, big-endian powerpc64, x32, ILP32 and Miri.
///
/// # Examples
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
