//! The clocks while root changes the system's: its clock source, its rate and its wall time.
//!
//! That concerns the whole system, so these tests run only in one that was started for them. By
//! its name this program runs after all others.

#![cfg(any(target_os = "linux", target_os = "android"))]

#[cfg(feature = "counter")]
mod counter;

use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use test_support::functions::assert_all_right;
use test_support::{PATHS, is_required, not_run_here};
use vdso_time::{ClockId, clock_gettime};

const FOLDER: &str = "/sys/devices/system/clocksource/clocksource0";
const WORD: &str = "clocksource-switch";

/// One test at a time changes the system, if that was started for it.
fn turn(word: &str) -> Option<MutexGuard<'static, ()>> {
    static TURN: Mutex<()> = Mutex::new(());
    if !is_required(word) {
        not_run_here(word, "it would change the clock of the whole system");
        return None;
    }
    Some(TURN.lock().unwrap_or_else(PoisonError::into_inner))
}

fn read(file: &str) -> String {
    fs::read_to_string(format!("{FOLDER}/{file}")).unwrap().trim().to_owned()
}

fn switch(name: &str) {
    fs::write(format!("{FOLDER}/current_clocksource"), name).unwrap();
}

#[test]
fn every_clock_stays_right_and_none_goes_back() {
    let Some(_turn) = turn(WORD) else { return };
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
