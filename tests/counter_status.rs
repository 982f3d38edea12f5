//! What the counter clock says of itself, in a process that never read it before.

#![cfg(any(target_os = "linux", target_os = "android"))]

#[path = "support/counter.rs"]
mod counter_clock;

use counter_clock::{expected, settle};
use test_support::child;
use vdso_time::counter::{self, State, Status};

#[test]
fn the_status_is_the_kernels_verdict() {
    child::fresh(1, || {
        let State { status, error_bound, frequency, .. } = counter::state();
        assert_eq!((status, error_bound, frequency), (Status::Calibrating, 0, None));
        let State { status, error_bound, frequency, .. } = settle();
        println!("{status:?}: {status}");
        assert_eq!(status, expected());
        assert_eq!((error_bound > 0, frequency.is_some()), (status == Status::Used, status == Status::Used));
        assert_eq!(counter::frequency().is_some(), status == Status::Used);
    });
}

#[test]
fn a_check_before_the_first_read_is_the_kernels_verdict() {
    child::fresh(1, || {
        assert_eq!(counter::check().err().unwrap_or(Status::Used), expected());
        assert_eq!(counter::status(), Status::Calibrating);
    });
}

/// A line can end between any two calls. 20 lines end here, each at whatever moment.
#[test]
fn a_state_is_of_one_moment() {
    child::fresh(1, || {
        let mut left = if settle().status == Status::Used { 20 } else { 0 };
        while left > 0 {
            let state = counter::state();
            if state.status == Status::Used {
                assert!(state.error_bound > 0 && state.frequency.is_some(), "{state:?}");
            } else {
                left -= 1;
                settle();
            }
        }
    });
}
