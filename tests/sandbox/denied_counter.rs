//! Calls that still work in seccomp's strict mode and under `PR_SET_TSC`, where reading the CPU's
//! counter or nearly every system call is fatal. The other calls end the process, as without this
//! crate.

#![allow(unsafe_code, reason = "prctl(2) is called here")]

use std::ffi::c_int;
use std::hint::black_box;

use test_support::child::{self, End, SUCCESS};
use test_support::nix::sys::signal::{Signal, raise};
use test_support::{not_run_here, oracle, signals};
use vdso_time::{Cause, ClockId, ReadCost, Route, Routes, routes, syscall};

/// Strict seccomp denies the counter too, there (seccomp_set_mode_strict of kernel/seccomp.c).
const X86: bool = cfg!(any(target_arch = "x86", target_arch = "x86_64"));

const KILLED: End = End::Signal(Signal::SIGKILL);

fn strict() -> bool {
    // SAFETY: it takes numbers.
    unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_STRICT, 0, 0, 0) == 0 }
}

fn without_counter() -> bool {
    const PR_TSC_SIGSEGV: c_int = 2;
    // SAFETY: it takes numbers.
    unsafe { libc::prctl(libc::PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) == 0 }
}

/// Returns how a child ends that makes a read in a state: with SIGILL if there is no such state.
fn end(is_first: bool, enter: fn() -> bool, read: Read) -> End {
    child::end_of(|| {
        signals::default(Signal::SIGSEGV); // std's handler would go on
        if !is_first {
            vdso_time::warm_up();
        }
        if !enter() {
            let _ = raise(Signal::SIGILL);
        }
        let status = c_int::from(!read());
        // SAFETY: it takes any status; any other end would be denied.
        unsafe { libc::syscall(libc::SYS_exit, status) };
        true
    })
}

fn coarse() -> bool {
    let clocks = [ClockId::REALTIME_COARSE, ClockId::MONOTONIC_COARSE];
    let times = clocks.map(vdso_time::clock_gettime);
    let ticks = clocks.map(vdso_time::clock_getres);
    let seconds = vdso_time::time();
    let ([Ok(now), Ok(up)], [Ok(tick), Ok(other_tick)]) = (times, ticks) else {
        return false;
    };
    let is_now = (now.tv_sec..=now.tv_sec + 1).contains(&seconds);
    let is_up = up.tv_sec >= 0 && up.tv_sec < seconds;
    is_now && is_up && tick.tv_nsec > 0 && other_tick.tv_nsec > 0
}

type Read = fn() -> bool;

const GETCPU: Read = || vdso_time::getcpu().is_ok();

const BY_COUNTER: [Read; 2] = [
    || vdso_time::clock_gettime(ClockId::MONOTONIC).is_ok(),
    || vdso_time::gettimeofday().is_ok(),
];

const BY_KERNEL: [Read; 2] = [
    || syscall::clock_gettime(ClockId::MONOTONIC).is_ok(),
    || vdso_time::clock_gettime(ClockId::THREAD_CPUTIME).is_ok(),
];

/// Measurements of a coarse clock. `CLOCK_MONOTONIC` measures the time. The answer depends on the
/// vDSO, so only the end of the process counts.
const TIMED: [Read; 2] = [
    || {
        black_box(vdso_time::read_cost(ClockId::MONOTONIC_COARSE));
        true
    },
    || {
        black_box(vdso_time::explain(ClockId::MONOTONIC_COARSE));
        true
    },
];

/// Answers that need no measurement, because no vDSO reads a CPU-time clock.
const UNTIMED: Read = || {
    let clocks = [ClockId::PROCESS_CPUTIME, ClockId::THREAD_CPUTIME];
    clocks.map(vdso_time::read_cost) == [ReadCost::SystemCall; 2]
        && !clocks.map(vdso_time::explain).contains(&Cause::Refused)
};

/// Returns how a read of the counter ends in a state that makes it fatal or not, and how if the
/// vDSO asks the kernel.
fn counter_ends(fatal: bool, if_asked: End) -> Option<End> {
    Some(match (oracle::counter_is_in_user_space()?, fatal) {
        (true, true) => End::Signal(Signal::SIGSEGV),
        (true, false) => SUCCESS,
        (false, _) => if_asked,
    })
}

#[test]
fn in_strict_seccomp_the_coarse_clocks_work() {
    if end(false, strict, || true) != SUCCESS {
        return not_run_here("there is no strict seccomp");
    }
    let expected = |function: fn(&Routes) -> Route| {
        let needs_kernel =
            child::end_of(|| matches!(function(&routes()), Route::Syscall { .. })) == SUCCESS;
        if needs_kernel { KILLED } else { SUCCESS }
    };
    assert_eq!(
        end(false, strict, coarse),
        expected(|found| found.clock_getres)
    );
    // riscv64's vDSO makes the system call.
    let asks = cfg!(target_arch = "riscv64");
    assert_eq!(
        end(false, strict, GETCPU),
        if asks {
            KILLED
        } else {
            expected(|found| found.getcpu)
        }
    );
    for read in BY_KERNEL.into_iter().chain([UNTIMED]) {
        assert_eq!(end(false, strict, read), KILLED);
    }
    for read in TIMED {
        assert_ne!(end(false, strict, read), SUCCESS);
    }
    if let Some(expected) = counter_ends(X86, KILLED) {
        for read in BY_COUNTER {
            assert_eq!(end(false, strict, read), expected);
        }
    }
    assert_eq!(end(true, strict, coarse), KILLED, "a first call");
}

#[test]
fn without_the_counter_the_coarse_clocks_and_the_kernel_work() {
    if !X86 {
        return not_run_here("this test denies the counter of x86 only");
    }
    if end(false, without_counter, || true) != SUCCESS {
        return not_run_here("PR_SET_TSC");
    }
    for is_first in [false, true] {
        for read in [coarse as Read, GETCPU].into_iter().chain(BY_KERNEL) {
            assert_eq!(end(is_first, without_counter, read), SUCCESS);
        }
        if let Some(expected) = counter_ends(true, SUCCESS) {
            for read in BY_COUNTER.into_iter().chain(TIMED) {
                assert_eq!(end(is_first, without_counter, read), expected);
            }
        }
        assert_eq!(end(is_first, without_counter, UNTIMED), SUCCESS);
    }
}
