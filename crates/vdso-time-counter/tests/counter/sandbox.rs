//! Sandboxes: a denied clock is a typed error or a panic at the caller's line, and no read makes a
//! system call that Android's filter catches.

use std::time::{Duration, Instant as StdInstant};

use test_support::filter::{self, ALLOW, KILL_PROCESS};
use test_support::functions::assert_panics;
use test_support::{Need, child, not_run, not_run_here};
use vdso_time::__private::NATIVE;
use vdso_time::{Errno, Instant};
use vdso_time_counter::{self as counter, CounterMonotonic, CounterRealtime, Ticks};

/// Returns whether this thread is in a sandbox that answers each clock call with this error.
fn is_denied(error: libc::c_int) -> bool {
    NATIVE.is_some_and(|abi| filter::restrict(&filter::clock_calls(abi), filter::error(error)).is_ok())
}

#[test]
fn without_a_vdso_a_denied_clock_is_the_sandboxes_error() {
    for (error, expected) in [(libc::EPERM, Errno::EPERM), (libc::ENOSYS, Errno::ENOSYS)] {
        child::forked(|| {
            child::set_vdso(0);
            if !is_denied(error) {
                return not_run_here(Need::Seccomp, "there is no seccomp, or no table of the calls");
            }
            // Twice: what the first call found must not mislead the second.
            for _ in 0..2 {
                assert_eq!(CounterMonotonic::try_now(), Err(expected));
                assert_eq!(CounterRealtime::try_now(), Err(expected));
                assert_eq!(CounterRealtime::of(Instant::from_clock_nanos(5)), Err(expected));
                assert_eq!(counter::state().error_bound, Duration::MAX);
                let reads: [(&str, &dyn Fn()); 4] = [
                    ("CounterMonotonic", &|| _ = counter::monotonic()),
                    ("CounterRealtime", &|| _ = counter::realtime()),
                    ("CounterMonotonic", &|| _ = CounterMonotonic::now()),
                    ("CounterRealtime", &|| _ = CounterRealtime::now()),
                ];
                assert_panics(file!(), expected, &reads);
            }
        });
    }
}

/// The calls of the clock that the filter of Android 11 allows to an app, and those of the test.
/// `tests/sandbox/android.rs` has the table with its source.
const CALLS: &[libc::c_long] = &[
    libc::SYS_clock_gettime,
    libc::SYS_rt_sigprocmask,
    libc::SYS_prctl,
    libc::SYS_openat,
    libc::SYS_read,
    libc::SYS_close,
    #[cfg(target_pointer_width = "32")]
    403, // clock_gettime64
    libc::SYS_exit_group,
    libc::SYS_rt_sigreturn,
];

#[test]
fn no_read_is_caught_by_androids_filter() {
    if NATIVE.is_none() {
        return not_run("libc makes the calls");
    }
    let calls: Vec<_> = CALLS.iter().map(|call| (*call as u32, ALLOW)).collect();
    for has_vdso in [true, false] {
        let mut program = filter::program(&calls, KILL_PROCESS, KILL_PROCESS);
        let end = child::end_of(|| {
            if !has_vdso {
                child::set_vdso(0);
            }
            let start = StdInstant::now();
            if let Err(error) = filter::install(&mut program) {
                not_run_here(Need::Seccomp, error);
                return true;
            }
            // Until it is calibrated, or is known not to be used, and for some segments.
            while start.elapsed() < Duration::from_millis(60) {
                let _ = (counter::monotonic(), counter::realtime(), Ticks::read().monotonic());
            }
            let _ = (counter::state(), counter::check());
            counter::monotonic().as_nanos() > 0
        });
        assert_eq!(end, child::WELL, "{has_vdso}");
    }
}
