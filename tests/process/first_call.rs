//! The promise: the first call is right wherever it is made: in sixteen threads at once, in a signal handler, in a forked
//! child, and whatever `init` says, before or after.
//!
//! No test here reads a clock of the crate in its own process: each starts another one, whose first call it is.

#![allow(unsafe_code, reason = "signals, and the contract of init")]

use std::ffi::c_int;
use std::fmt::Debug;
use std::mem;
use std::panic::resume_unwind;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use test_support::{PATHS, Path, allowed_cpus, child, lies_between, oracle, pin};
use vdso_time::vdso::{LocateError, Vdso};
use vdso_time::{ClockId, Errno, FallbackReason, Route, Routes};

const FUNCTIONS: [&str; 5] = ["clock_gettime", "clock_getres", "gettimeofday", "time", "getcpu"];

/// Fails unless a function of a path answers what the kernel does; `start` is called between the kernel's first answer
/// and the function's. There is no second try for a clock that is set meanwhile: a first call cannot be repeated.
#[track_caller]
fn check(function: &str, path: &Path, start: impl Fn()) {
    match function {
        "clock_gettime" => between(
            || oracle::clock_gettime(libc::CLOCK_MONOTONIC),
            || (path.clock_gettime)(ClockId::MONOTONIC),
            start,
        ),
        "clock_getres" => between(
            || oracle::clock_getres(libc::CLOCK_MONOTONIC),
            || (path.clock_getres)(ClockId::MONOTONIC),
            start,
        ),
        "gettimeofday" => {
            between(oracle::micros, || (path.gettimeofday)().map(|now| (now.tv_sec, now.tv_usec)), start);
        }
        "time" => between(oracle::seconds, path.time, start),
        _ => {
            // Pinned, for a thread that is moved away and back would belie the kernel's two answers.
            let cpus = allowed_cpus();
            let here = oracle::getcpu().unwrap().0;
            let pinned = cpus.as_ref().is_some_and(|cpus| pin(cpus, here as usize));
            start();
            let ours = (path.getcpu)().map(|here| (here.cpu, here.node)).map_err(Errno::raw_os_error);
            assert!(if pinned { ours == oracle::getcpu() } else { ours.is_ok() }, "{ours:?} on CPU {here}");
        }
    }
}

#[track_caller]
fn between<T: PartialOrd + Debug>(
    kernel: impl Fn() -> Result<T, i32>,
    read: impl FnOnce() -> Result<T, Errno>,
    start: impl Fn(),
) {
    let before = kernel();
    start();
    let (ours, after) = (read().map_err(Errno::raw_os_error), kernel());
    assert!(before.is_ok() && lies_between(&before, &ours, &after), "{before:?} <= {ours:?} <= {after:?}");
}

#[track_caller]
fn check_all(path: &Path) {
    for function in FUNCTIONS {
        check(function, path, || ());
    }
}

#[test]
fn threads_that_race_for_the_first_call_agree() {
    for function in FUNCTIONS {
        child::fresh(20, || race(function));
    }
}

fn race(function: &str) {
    const THREADS: usize = 16;
    let ready = AtomicUsize::new(0);
    // Not std's barrier, which lets its threads go one by one.
    let start = || {
        ready.fetch_add(1, Ordering::Relaxed);
        while ready.load(Ordering::Relaxed) < THREADS {
            thread::yield_now();
        }
    };
    let runner = || {
        check(function, &PATHS[0], start);
        check(function, &PATHS[0], || ());
        vdso_time::routes()
    };
    let seen: Vec<Routes> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(runner)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    assert_eq!(seen, [vdso_time::routes(); THREADS]);
    assert_found(&seen[0]);
}

/// Fails if a first call missed the vDSO.
#[track_caller]
fn assert_found(routes: &Routes) {
    let missed = reasons(routes).iter().any(|reason| matches!(reason, Some(FallbackReason::NoVdso(_))));
    assert!(!missed || Vdso::locate().is_err(), "{routes}");
}

/// Why each function is not answered by the vDSO, if it is not.
fn reasons(routes: &Routes) -> [Option<FallbackReason>; 5] {
    routes.functions().map(|(_, route)| match route {
        Route::Syscall { reason, .. } => Some(reason),
        _ => None,
    })
}

/// How often the handler ran to its end.
static HANDLED: AtomicUsize = AtomicUsize::new(0);

extern "C" fn on_signal(_: c_int) {
    check_all(&PATHS[0]);
    HANDLED.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn the_first_call_may_be_made_in_a_signal_handler() {
    child::forked(|| {
        // SAFETY: all zero is an action with no flags and an empty mask.
        let mut action: libc::sigaction = unsafe { mem::zeroed() };
        action.sa_sigaction = on_signal as extern "C" fn(c_int) as usize;
        // SAFETY: the handler has the signature that an action without SA_SIGINFO wants.
        assert_eq!(unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, ptr::null_mut()) }, 0);
        // SAFETY: raise(3) takes any signal; it returns after the handler has.
        assert_eq!(unsafe { libc::raise(libc::SIGUSR1) }, 0);
        assert_eq!(HANDLED.load(Ordering::Relaxed), 1);
        check_all(&PATHS[0]);
    });
}

#[test]
fn the_first_call_may_be_made_in_a_forked_child() {
    for path in &PATHS {
        child::forked(|| check_all(path));
    }
}

#[test]
fn a_child_goes_on_with_what_its_parent_found() {
    child::forked(|| {
        PATHS.iter().for_each(check_all);
        let routes = vdso_time::routes();
        child::forked(|| {
            PATHS.iter().for_each(check_all);
            assert_eq!(vdso_time::routes(), routes);
        });
    });
}

/// Calls `init` with the auxiliary vector's value, or null if that has none.
fn say_where() {
    let ehdr = ptr::with_exposed_provenance(oracle::sysinfo_ehdr());
    // SAFETY: it is the vector's value, or null.
    unsafe { vdso_time::init(ehdr) };
}

fn say_nowhere() {
    // SAFETY: null is always allowed.
    unsafe { vdso_time::init(ptr::null()) };
}

#[test]
fn init_before_the_first_call_says_where_the_vdso_is() {
    const TEST: &str = "init_before_the_first_call_says_where_the_vdso_is";
    child::fresh(1, || {
        say_where();
        check_all(&PATHS[0]);
        assert_eq!(Vdso::locate().is_ok(), oracle::sysinfo_ehdr() != 0);
        assert_found(&vdso_time::routes());
    });
    child::fresh(1, || {
        let nowhere = LocateError::Absent;
        say_nowhere();
        check_all(&PATHS[0]);
        assert_eq!(Vdso::locate().err(), Some(nowhere));
        assert_eq!(reasons(&vdso_time::routes()), [Some(FallbackReason::NoVdso(nowhere)); 5]);
        // Now it is too late for every function that the vDSO could answer.
        say_where();
        check_all(&PATHS[0]);
        assert!(!reasons(&vdso_time::routes()).contains(&None), "{}", vdso_time::routes());
    });
}

#[test]
fn init_after_the_first_call_is_harmless() {
    child::fresh(1, || {
        check_all(&PATHS[0]);
        let routes = vdso_time::routes();
        say_where();
        assert_eq!(vdso_time::routes(), routes);
        say_nowhere();
        check_all(&PATHS[0]);
        let by_kernel = |routes: &Routes| reasons(routes).map(|reason| reason.is_some());
        assert_eq!(by_kernel(&vdso_time::routes()), by_kernel(&routes));
        say_where();
        assert_eq!(vdso_time::routes(), routes);
    });
}
