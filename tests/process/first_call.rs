//! The promise: the first call is right in threads that race for it under signals.

use std::ffi::{c_int, c_void};
use std::os::unix::thread::JoinHandleExt as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use test_support::functions::{assert_all_right, wrong};
use test_support::nix::sys::pthread::pthread_kill;
use test_support::nix::sys::signal::{SaFlags, SigSet, Signal, kill};
use test_support::nix::unistd::Pid;
use test_support::{PATHS, child, signals};
use vdso_time::routes;

use super::missed_the_vdso;

/// How often the handler ran to its end, and how often an answer was wrong.
static HANDLED: AtomicUsize = AtomicUsize::new(0);
static WRONG: AtomicUsize = AtomicUsize::new(0);

fn read_all() {
    WRONG.fetch_add(wrong(&PATHS[0]).is_some().into(), Ordering::Relaxed);
}

extern "C" fn on_signal(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
    read_all();
    HANDLED.fetch_add(1, Ordering::Relaxed);
}

/// Interrupts at random, on every architecture. `single_step.rs` interrupts at each instruction.
#[test]
fn threads_race_for_the_first_call_in_a_storm_of_signals() {
    const THREADS: usize = 64;
    /// How often a handler must have run before the race is over.
    const SIGNALS: usize = 3 * THREADS;
    static IS_OPEN: AtomicBool = AtomicBool::new(false);
    static RUNNING: AtomicUsize = AtomicUsize::new(THREADS);

    let race = || {
        while !IS_OPEN.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        while HANDLED.load(Ordering::Relaxed) < SIGNALS {
            read_all();
            thread::sleep(Duration::from_millis(1)); // or the sender waits for all the others
        }
        let found = routes();
        RUNNING.fetch_sub(1, Ordering::Relaxed);
        found
    };
    child::forked(|| {
        // One signal may interrupt the handler of the other.
        signals::handle(Signal::SIGUSR1, SaFlags::SA_RESTART, on_signal);
        signals::handle(Signal::SIGALRM, SaFlags::SA_RESTART, on_signal);
        let threads: Vec<_> = (0..THREADS).map(|_| thread::spawn(race)).collect();
        IS_OPEN.store(true, Ordering::Relaxed);
        while RUNNING.load(Ordering::Relaxed) != 0 {
            // To the process: to any of its threads.
            kill(Pid::this(), Signal::SIGALRM).unwrap();
            for thread in &threads {
                pthread_kill(thread.as_pthread_t(), Signal::SIGUSR1).unwrap();
            }
            thread::sleep(Duration::from_millis(5));
        }
        for thread in threads {
            assert_eq!(thread.join().unwrap(), routes());
        }
        assert_eq!(WRONG.load(Ordering::Relaxed), 0);
        assert!(!missed_the_vdso(&routes()), "{}", routes());
    });
}

/// Probes with a system call that could block signals.
#[test]
fn a_first_call_blocks_no_signal() {
    child::forked(|| {
        let mask = SigSet::thread_get_mask();
        assert_all_right(&PATHS[0]);
        assert_eq!(SigSet::thread_get_mask(), mask);
    });
}
