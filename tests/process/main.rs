//! First calls, in every state that a process can be in when it makes one.
//!
//! The rule of this program: no test calls the crate in its own process. Each call is made in a
//! forked child ([`test_support::child`]). So it is a first call there, and signals, limits and
//! mappings that a test changes are changed in that child alone.

#![cfg(any(target_os = "linux", target_os = "android"))]

mod first_call;
mod kernel_entry;
mod single_step;
mod stack;
mod synthetic_vdso;
mod vdso_states;

use vdso_time::vdso::Vdso;
use vdso_time::{FallbackReason, Route, Routes};

/// Returns, for each function, why the vDSO does not answer it, or `None` if it does.
fn reasons(routes: &Routes) -> [Option<FallbackReason>; 5] {
    let Routes {
        time,
        gettimeofday,
        clock_gettime,
        clock_getres,
        getcpu,
        ..
    } = *routes;
    [time, gettimeofday, clock_gettime, clock_getres, getcpu].map(|route| match route {
        Route::Syscall { reason, .. } => Some(reason),
        _ => None,
    })
}

/// Returns whether a first call missed a vDSO that is there.
fn missed_the_vdso(routes: &Routes) -> bool {
    let missed =
        |reason: &Option<FallbackReason>| matches!(reason, Some(FallbackReason::NoVdso(_)));
    Vdso::locate().is_ok() && reasons(routes).iter().any(missed)
}
