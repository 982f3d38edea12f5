//! Clocks in states that a machine seldom has: past 2038, and in a time namespace.

use test_support::functions::assert_all_right;
use test_support::{PATHS, child, has_proc, not_run_here, oracle};
use vdso_time::{ClockId, SystemTime, Timespec};

/// Runs in the kernels that `cargo xtask` boots in 2040.
#[test]
fn past_2038_every_function_says_2040() {
    if oracle::seconds().unwrap() <= i64::from(i32::MAX) {
        return not_run_here("it is before 2038");
    }
    // 2040 began 2208988800 s after the Epoch: 70 years with 18 leap days.
    let year = 2_208_988_800..2_208_988_800 + 366 * 86_400;
    assert!(year.contains(&oracle::seconds().unwrap()));
    PATHS.iter().for_each(assert_all_right);
    assert!(year.contains(&Timespec::from(SystemTime::now()).tv_sec));
}

/// Finds other times at the same functions: the namespace changes the vDSO's data page
/// (time_namespaces(7)).
#[test]
fn a_child_in_a_time_namespace_reads_the_namespaces_clocks() {
    if !has_proc() {
        return;
    }
    PATHS.iter().for_each(assert_all_right);
    let clocks = [(ClockId::MONOTONIC, 100_000), (ClockId::BOOTTIME, 200_000)];
    let seconds = |clock: ClockId| oracle::clock_gettime(clock.as_raw()).unwrap().tv_sec;
    let before = clocks.map(|(clock, _)| seconds(clock));
    child::forked(|| {
        if !child::has_time_namespace("monotonic 100000 0\nboottime 200000 0\n") {
            return;
        }
        child::forked(|| {
            for ((clock, offset), before) in clocks.into_iter().zip(before) {
                let passed = seconds(clock) - before - offset;
                assert!((0..100).contains(&passed), "{clock:?}: {passed} s");
            }
            PATHS.iter().for_each(assert_all_right);
        });
    });
}
