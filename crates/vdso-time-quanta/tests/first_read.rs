//! Tests of what happens before and in the first read of a process. Each test forks, and the parent
//! never reads the clock.

#![cfg(any(target_os = "linux", target_os = "android"))]

use std::panic::catch_unwind;
use std::time::Duration;

use test_support::{child, filter, nix, not_run_here};
use vdso_time::__private::NATIVE;
use vdso_time_counter::{self as counter, Status};
use vdso_time_quanta::minstant::is_tsc_available;
use vdso_time_quanta::{Clock, Instant, Upkeep};

#[test]
fn whether_the_counter_is_available_is_the_same_before_and_after_its_calibration() {
    child::forked(|| {
        let is_available = is_tsc_available();
        assert_eq!(is_available, counter::check().is_ok());
        while counter::state().status == Status::Calibrating {
            let _ = Instant::now();
        }
        assert_eq!(is_tsc_available(), is_available);
    });
}

#[test]
fn an_upkeep_whose_first_read_panics_does_not_run() {
    let Some(abi) = NATIVE else {
        return not_run_here("libc answers here");
    };
    child::forked(|| {
        child::set_vdso(0);
        if !filter::deny(&filter::clock_calls(abi), nix::libc::EPERM) {
            return;
        }
        assert!(catch_unwind(|| Upkeep::new(Duration::MAX).start()).is_err());
        let (clock, _mock) = Clock::mock();
        let upkeep = Upkeep::new_with_clock(Duration::MAX, clock).start();
        assert!(upkeep.is_ok(), "{upkeep:?}");
    });
}
