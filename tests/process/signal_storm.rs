//! The promise: threads may race for the first call while signals, whose handlers read every clock, interrupt them.
//!
//! Where instructions can be executed one by one, `tests/process/single_step.rs` tries each; this one is for every architecture.

#![allow(unsafe_code, reason = "signals are handled and sent")]

use std::ffi::c_int;
use std::mem;
use std::os::unix::thread::JoinHandleExt as _;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use test_support::{PATHS, answers, child};
use vdso_time::vdso::Vdso;
use vdso_time::{FallbackReason, Route, Routes, routes};

const THREADS: usize = 64;

/// How often a handler must have run before the race is over.
const SIGNALS: usize = 3 * THREADS;

/// How often the handler ran, in all, and how often it, or a thread, was answered wrongly.
static HANDLED: AtomicUsize = AtomicUsize::new(0);
static WRONG: AtomicUsize = AtomicUsize::new(0);

fn read_all() {
    let wrong = answers::wrong(&PATHS[0]).is_some();
    WRONG.fetch_add(wrong.into(), Ordering::Relaxed);
}

extern "C" fn on_signal(_: c_int) {
    read_all();
    HANDLED.fetch_add(1, Ordering::Relaxed);
}

fn handle(signal: c_int) {
    // SAFETY: all zero is an action with no flags and an empty mask: one signal may interrupt the handler of the other.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = on_signal as extern "C" fn(c_int) as usize;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the handler has the signature that an action without SA_SIGINFO wants.
    assert_eq!(unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) }, 0);
}

/// Has SIGALRM sent to the process, to whichever of its threads, once: a storm that its handlers cannot keep up with would not
/// end.
fn start_timer() {
    // SAFETY: an interval is numbers, and may be all zero.
    let mut timer: libc::itimerval = unsafe { mem::zeroed() };
    timer.it_value.tv_usec = 1000;
    // SAFETY: the kernel reads the interval.
    assert_eq!(unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, ptr::null_mut()) }, 0);
}

fn missed_the_vdso(routes: &Routes) -> bool {
    let missed = |(_, route)| matches!(route, Route::Syscall { reason: FallbackReason::NoVdso(_), .. });
    Vdso::locate().is_ok() && routes.functions().into_iter().any(missed)
}

/// Whether the race is on, and how many are in it.
static IS_OPEN: AtomicBool = AtomicBool::new(false);
static RUNNING: AtomicUsize = AtomicUsize::new(THREADS);

fn race() -> Routes {
    while !IS_OPEN.load(Ordering::Relaxed) {
        thread::yield_now();
    }
    while HANDLED.load(Ordering::Relaxed) < SIGNALS {
        read_all();
        thread::sleep(Duration::from_millis(1)); // or the sender of the signals waits for all the others
    }
    let found = routes();
    RUNNING.fetch_sub(1, Ordering::Relaxed);
    found
}

#[test]
fn threads_race_for_the_first_call_in_a_storm_of_signals() {
    child::fresh(1, || {
        handle(libc::SIGUSR1);
        handle(libc::SIGALRM);
        let threads: Vec<_> = (0..THREADS).map(|_| thread::spawn(race)).collect();
        IS_OPEN.store(true, Ordering::Relaxed);
        while RUNNING.load(Ordering::Relaxed) != 0 {
            start_timer();
            for thread in &threads {
                // SAFETY: the thread is not joined yet.
                unsafe { libc::pthread_kill(thread.as_pthread_t(), libc::SIGUSR1) };
            }
            thread::sleep(Duration::from_millis(5));
        }
        let found: Vec<Routes> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert_eq!(WRONG.load(Ordering::Relaxed), 0);
        assert_eq!(found, [routes(); THREADS]);
        assert!(!missed_the_vdso(&found[0]), "{}", found[0]);
    });
}
