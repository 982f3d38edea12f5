//! The first process of a system. When it starts, nothing is mounted and there is no environment.
//! If it ends, the kernel panics. A real init therefore never ends, but this program does: it
//! prints the time and ends with status 0 if the vDSO answered.
//!
//! - It calls `vdso::set_address`, because otherwise the crate needs /proc, or PR_GET_AUXV of Linux
//!   6.4, to find the vDSO.
//! - It calls `try_now()` and not `now()`, because `try_now()` cannot panic.
//! - It reads `CLOCK_MONOTONIC`, because the wall clock can be at 1970 until the network is up.

#![no_std]
#![no_main]

#[path = "../runtime.rs"]
mod runtime;

use core::fmt::Write as _;

use vdso_time::{Instant, Route, routes};

fn main(_: usize, ehdr: *const u8) -> i32 {
    // SAFETY: this is the value of the process's AT_SYSINFO_EHDR, or null.
    let is_set = unsafe { vdso_time::vdso::set_address(ehdr) }.is_ok();
    let uptime = Instant::try_now().map(Instant::as_nanos);
    let is_vdso = matches!(routes().clock_gettime, Route::Vdso { .. });
    let printed = writeln!(runtime::Stdout, "{uptime:?} ns, vDSO: {is_vdso}");
    i32::from(!is_set || printed.is_err() || !matches!(uptime, Ok(1..)) || !is_vdso)
}
