//! What answers on this target: the one place where that is chosen.
//!
//! Each sibling has the same functions: those of `calls`, of `syscall` (on Linux), `routes` and
//! `warm_up`. build.rs sets the conditions. Without `vdso_time_clock`, lib.rs leaves this module
//! out, and only types and traits exist.

#[cfg_attr(
    all(vdso_time_linux, not(vdso_time_libc_fallback)),
    path = "vdso/mod.rs"
)]
#[cfg_attr(all(vdso_time_linux, vdso_time_libc_fallback), path = "libc.rs")]
#[cfg_attr(not(vdso_time_linux), path = "std.rs")]
mod chosen;

pub(crate) use chosen::calls;
#[cfg(vdso_time_linux)]
pub(crate) use chosen::syscall;
pub use chosen::{routes, warm_up};
