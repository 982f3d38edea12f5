//! What answers on this target: the one place where that is chosen.
//!
//! Each sibling has the same functions, in modules of the same names.

#[cfg_attr(all(vdso_time_linux, not(vdso_time_libc_fallback)), path = "vdso/mod.rs")]
#[cfg_attr(all(vdso_time_linux, vdso_time_libc_fallback), path = "libc.rs")]
#[cfg_attr(not(vdso_time_linux), path = "std.rs")]
mod chosen;

#[cfg(vdso_time_linux)]
pub(crate) use chosen::syscall;
pub(crate) use chosen::{calls, routes};
