//! The counter clock while the kernel's clock source is switched to another: it falls back in time, and says so.

#![cfg(any(target_os = "linux", target_os = "android"))]

#[path = "support/counter.rs"]
mod counter_clock;

use std::fs;
use std::time::{Duration, Instant};

use counter_clock::{FOLDER, assert_near, clock_source, settle};
use test_support::{is_required, not_run_here, oracle};
use vdso_time::counter::{self, Status};

/// It is the whole system's clock source that is switched, so this is for a system that is there for the test.
#[test]
fn a_clock_source_that_is_switched_away() {
    let word = "clocksource-switch";
    if !is_required(word) {
        return not_run_here(word, "it would switch the clock source of the whole system");
    }
    let status = settle().status;
    if status != Status::Used {
        return not_run_here("counter", format!("the counter is not used: {status}"));
    }
    let (first, file) = (clock_source().unwrap(), format!("{FOLDER}/current_clocksource"));
    let available = fs::read_to_string(format!("{FOLDER}/available_clocksource")).unwrap();
    for other in available.split_whitespace().filter(|name| **name != first) {
        fs::write(&file, other).unwrap();
        let is_fast = oracle::counter_is_in_user_space();
        let start = Instant::now();
        let mut last = 0;
        while counter::status() != Status::ClockSource && start.elapsed() < Duration::from_secs(1) {
            let now = counter::monotonic();
            assert!(now >= last, "{now} after {last}");
            last = now;
        }
        let (status, took) = (counter::status(), start.elapsed());
        assert_near(libc::CLOCK_MONOTONIC, || counter::monotonic() as i64);
        fs::write(&file, &first).unwrap();
        println!("{first} -> {other}: {status:?} after {took:?}");
        // A clock source that the vDSO reads as fast is noticed when the clocks go apart: as long as they do not, nothing is wrong.
        if is_fast == Some(false) {
            return assert_eq!(status, Status::ClockSource);
        }
        assert_near(libc::CLOCK_MONOTONIC, || counter::monotonic() as i64);
    }
    not_run_here(word, "there is no other clock source, or none that the vDSO cannot read");
}
