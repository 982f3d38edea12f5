//! The promise: the first call is right in threads that race for it under signals, and whatever
//! `vdso::set_address` says, before or after. `single_step.rs` has the other states.

use std::ffi::{c_int, c_void};
use std::os::unix::thread::JoinHandleExt as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use test_support::functions::{assert_all_right, wrong};
use test_support::nix::sys::pthread::pthread_kill;
use test_support::nix::sys::signal::{SaFlags, SigSet, Signal, kill};
use test_support::nix::unistd::Pid;
use test_support::{PATHS, child, oracle, signals};
use vdso_time::routes;
use vdso_time::vdso::Vdso;

use super::{missed_the_vdso, reasons};

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

#[test]
fn only_an_address_set_before_the_first_call_counts() {
    let found = || (Vdso::locate().is_ok(), reasons(&routes()).map(|reason| reason.is_some()));
    let ehdr = oracle::sysinfo_ehdr();
    for first in [None, Some(ehdr), Some(0)] {
        child::forked(|| {
            first.into_iter().for_each(child::set_vdso);
            let mask = SigSet::thread_get_mask();
            assert_all_right(&PATHS[0]);
            assert_eq!(SigSet::thread_get_mask(), mask, "blocked signals");
            assert!(first == Some(0) || !missed_the_vdso(&routes()), "{}", routes());
            let before = found();
            assert!(first != Some(0) || before == (false, [true; 5]), "{}", routes());
            for address in [0, ehdr] {
                assert!(!child::can_set_vdso(address));
                assert_all_right(&PATHS[0]);
                assert_eq!(found(), before);
            }
        });
    }
}

#[cfg(feature = "std")]
#[test]
fn threads_that_race_for_the_first_conversion_get_one_offset() {
    use std::sync::Barrier;
    use std::time::Instant as Std;
    use vdso_time::Instant;

    for _ in 0..50 {
        child::forked(|| {
            let (ours, std, barrier) = (Instant::now(), Std::now(), Barrier::new(2));
            let both = || (Std::from(ours), Instant::try_from(std).unwrap());
            let race = || {
                barrier.wait();
                both()
            };
            let seen =
                thread::scope(|scope| [scope.spawn(race), scope.spawn(race)].map(|one| one.join().unwrap()));
            assert_eq!(seen, [both(); 2]);
        });
    }
}
