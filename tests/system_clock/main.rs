//! The clocks while root changes the system's clock source.
//!
//! That concerns the whole system, so this test runs only in one that was started for it. By its
//! name this program runs after all others.

#![cfg(any(target_os = "linux", target_os = "android"))]

use std::thread;
use std::time::Duration;

use test_support::functions::assert_all_right;
use test_support::system_clock::{read, switch, turn};
use test_support::{Need, PATHS};
use vdso_time::{ClockId, clock_gettime};

#[test]
fn every_clock_stays_right_and_none_goes_back() {
    let Some(_turn) = turn(Need::ClockSourceSwitch) else { return };
    let first = read("current_clocksource");
    // The slots are filled while the first is there.
    PATHS.iter().for_each(assert_all_right);
    let mut switched = 0;
    let mut last = clock_gettime(ClockId::MONOTONIC).unwrap();
    for name in read("available_clocksource").split_whitespace().chain([&*first]) {
        let before = read("current_clocksource");
        switch(name);
        // The kernel may refuse, and keep the one that it has.
        switched += u32::from(read("current_clocksource") != before);
        for _ in 0..1000 {
            let now = clock_gettime(ClockId::MONOTONIC).unwrap();
            assert!(last <= now, "{name}: {last:?}, then {now:?}");
            last = now;
        }
        // A kernel that leaves jiffies changes its resolution at once, and the vDSO's copy at the
        // next timer tick (kernel/time/vsyscall.c, update_vsyscall).
        thread::sleep(Duration::from_millis(50));
        PATHS.iter().for_each(assert_all_right);
    }
    assert!(switched > 0, "the kernel keeps {first}");
}
