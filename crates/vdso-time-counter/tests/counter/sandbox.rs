//! Tests in sandboxes: a denied clock is a typed error, or a panic at the caller's line.

use std::time::Duration;

use test_support::functions::assert_panics;
use test_support::{child, filter, not_run_here};
use vdso_time::__private::NATIVE;
use vdso_time::{Errno, Instant};
use vdso_time_counter::{
    self as counter, CounterMonotonic, CounterMonotonicUnordered, CounterRealtime,
    CounterRealtimeUnordered,
};

/// Puts this thread into a sandbox that answers each clock call with this error. Returns whether
/// that succeeded.
fn is_denied(error: libc::c_int) -> bool {
    NATIVE.is_some_and(|abi| {
        filter::restrict(&filter::clock_calls(abi), filter::error(error)).is_ok()
    })
}

#[test]
fn without_a_vdso_a_denied_clock_is_the_sandboxes_error() {
    for (error, expected) in [(libc::EPERM, Errno::EPERM), (libc::ENOSYS, Errno::ENOSYS)] {
        child::forked(|| {
            child::set_vdso(0);
            if !is_denied(error) {
                return not_run_here("there is no seccomp, or no table of the calls");
            }
            // Reads twice, because what the first call has stored must not mislead the second.
            for _ in 0..2 {
                assert_eq!(CounterMonotonic::try_now(), Err(expected));
                assert_eq!(CounterRealtime::try_now(), Err(expected));
                assert_eq!(CounterRealtime::of(Instant::from_nanos(5)), Err(expected));
                assert_eq!(counter::state().error_bound, Duration::MAX);
                let reads: [(&str, &dyn Fn()); 4] = [
                    ("CounterMonotonicUnordered", &|| {
                        _ = CounterMonotonicUnordered::now();
                    }),
                    ("CounterRealtimeUnordered", &|| {
                        _ = CounterRealtimeUnordered::now();
                    }),
                    ("CounterMonotonic", &|| _ = CounterMonotonic::now()),
                    ("CounterRealtime", &|| _ = CounterRealtime::now()),
                ];
                assert_panics(file!(), expected, &reads);
            }
        });
    }
}
