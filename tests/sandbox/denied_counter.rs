//! What still works where reading the CPU's counter is fatal, or nearly every system call: in seccomp's strict mode, and
//! under PR_SET_TSC. The rest ends the process, as it would without this crate; how is shown here.

#![allow(unsafe_code, reason = "prctl(2) is called here")]

use std::ffi::c_int;

use test_support::{child, not_run, not_run_here, oracle};
use vdso_time::{ClockId, Route, Routes, routes, syscall};

/// Strict seccomp takes the counter away too, there (seccomp_set_mode_strict of kernel/seccomp.c).
const X86: bool = cfg!(any(target_arch = "x86", target_arch = "x86_64"));

/// How a child ends: well, or by a signal.
const WELL: c_int = 0;

fn strict() -> bool {
    // SAFETY: it takes numbers.
    unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_STRICT, 0, 0, 0) == 0 }
}

fn without_counter() -> bool {
    const PR_TSC_SIGSEGV: c_int = 2;
    // SAFETY: it takes numbers.
    unsafe { libc::prctl(libc::PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) == 0 }
}

/// Where the first calls are made: before the state, or in it.
type Before = fn();
const MADE: Before = || _ = routes();
const NOT_MADE: Before = || ();

/// Does a read in a state, after what comes before it, and gives how the child ended: by SIGILL if the state cannot be had,
/// with status 1 if the answer is wrong.
fn end(before: Before, enter: fn() -> bool, read: fn() -> bool) -> c_int {
    child::end_of(|| {
        // SAFETY: it takes numbers. std's handler would go on.
        unsafe { libc::signal(libc::SIGSEGV, libc::SIG_DFL) };
        before();
        if !enter() {
            // SAFETY: it takes any signal.
            unsafe { libc::raise(libc::SIGILL) };
        }
        let status = c_int::from(!read());
        // SAFETY: it takes any status; any other end would be denied.
        unsafe { libc::syscall(libc::SYS_exit, status) };
    })
}

fn coarse() -> bool {
    let clocks = [ClockId::REALTIME_COARSE, ClockId::MONOTONIC_COARSE];
    let times = clocks.map(vdso_time::clock_gettime);
    let ticks = clocks.map(vdso_time::clock_getres);
    let seconds = vdso_time::time();
    let is_now = times[0].is_ok_and(|now| (now.tv_sec..=now.tv_sec + 1).contains(&seconds));
    let is_up = times[1].is_ok_and(|up| up.tv_sec >= 0 && up.tv_sec < seconds);
    is_now && is_up && ticks.iter().all(|tick| tick.is_ok_and(|tick| tick.tv_nsec > 0))
}

fn cpu() -> bool {
    vdso_time::getcpu().is_ok()
}

fn counter() -> bool {
    vdso_time::clock_gettime(ClockId::MONOTONIC).is_ok()
}

fn by_kernel() -> bool {
    syscall::clock_gettime(ClockId::MONOTONIC).is_ok()
}

/// How a read of the counter ends in a state that makes it fatal or not, and by what if the vDSO asks the kernel.
fn counter_ends(fatal: bool, if_asked: c_int) -> Option<c_int> {
    let in_vdso = oracle::counter_is_in_user_space()?;
    Some(match (in_vdso, fatal) {
        (true, true) => libc::SIGSEGV,
        (true, false) => WELL,
        (false, _) => if_asked,
    })
}

#[test]
fn in_strict_seccomp_the_coarse_clocks_are_left() {
    if end(MADE, strict, || true) != WELL {
        return not_run_here("seccomp", "there is no strict seccomp");
    }
    let is_fatal = |function: fn(&Routes) -> Route| {
        let by_vdso = child::end_of(|| assert!(matches!(function(&routes()), Route::Vdso { .. }))) == 0;
        if by_vdso { WELL } else { libc::SIGKILL }
    };
    assert_eq!(end(MADE, strict, coarse), is_fatal(|found| found.clock_getres));
    assert_eq!(end(MADE, strict, cpu), is_fatal(|found| found.getcpu));
    assert_eq!(end(MADE, strict, by_kernel), libc::SIGKILL);
    if let Some(expected) = counter_ends(X86, libc::SIGKILL) {
        assert_eq!(end(MADE, strict, counter), expected);
    }
}

#[test]
fn in_strict_seccomp_a_first_call_is_fatal() {
    if end(MADE, strict, || true) != WELL {
        return not_run_here("seccomp", "there is no strict seccomp");
    }
    assert_eq!(end(NOT_MADE, strict, coarse), libc::SIGKILL);
}

#[test]
fn without_the_counter_the_coarse_clocks_and_the_kernel_are_left() {
    if !X86 {
        return not_run("only x86 has PR_SET_TSC");
    }
    if end(MADE, without_counter, || true) != WELL {
        return not_run_here("tsc", "PR_SET_TSC");
    }
    for before in [MADE, NOT_MADE] {
        assert_eq!(end(before, without_counter, coarse), WELL);
        assert_eq!(end(before, without_counter, cpu), WELL);
        assert_eq!(end(before, without_counter, by_kernel), WELL);
        if let Some(expected) = counter_ends(true, WELL) {
            assert_eq!(end(before, without_counter, counter), expected);
        }
    }
}
