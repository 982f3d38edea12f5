//! The counter clock's status from its first read on: each in a process that never read it before.

#![cfg(any(target_os = "linux", target_os = "android"))]

#[path = "support/counter.rs"]
mod counter_clock;
mod support;

use counter_clock::{expected, settle};
use support::child;
use vdso_time::counter::{self, Status};

#[test]
fn the_status_is_the_kernels_verdict() {
    child::fresh("the_status_is_the_kernels_verdict", "settle", 1, || {
        assert_eq!(counter::status(), Status::Calibrating);
        assert_eq!(counter::error_bound(), 0);
        let status = settle();
        println!("{status:?}: {status}");
        assert_eq!(status, expected());
        assert_eq!(counter::error_bound() > 0, status == Status::Used);
    });
}
