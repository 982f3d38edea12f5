//! What the counter clock says of itself.

use test_support::child;
use vdso_time::counter::{self, State, Status};

use crate::{expected, settle};

#[test]
fn the_status_before_and_after_calibration_is_the_kernels_verdict() {
    child::forked(|| {
        let State { status, error_bound, frequency, .. } = counter::state();
        assert_eq!((status, error_bound, frequency), (Status::Calibrating, 0, None));
        assert_eq!(counter::check().err().unwrap_or(Status::Used), expected());
        assert_eq!(counter::status(), Status::Calibrating);
        let State { status, error_bound, frequency, .. } = settle();
        println!("{status:?}: {status}");
        assert_eq!(status, expected());
        assert_eq!((error_bound > 0, frequency.is_some()), (status == Status::Used, status == Status::Used));
        assert_eq!(counter::frequency().is_some(), status == Status::Used);
    });
}

/// A segment can end between any two calls. 20 segments end here, each at an arbitrary moment.
#[test]
fn a_state_is_of_one_moment() {
    child::forked(|| {
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
