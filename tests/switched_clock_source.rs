//! The clocks while the kernel's clock source is switched.
//!
//! The clock source is the whole system's, so these tests run only in a system that was started for
//! the tests. By its name this program runs after all others but the last, which only counts.

#![cfg(any(target_os = "linux", target_os = "android"))]

use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use test_support::functions::assert_all_right;
use test_support::{PATHS, is_required, not_run_here};
use vdso_time::{ClockId, clock_gettime};

const FOLDER: &str = "/sys/devices/system/clocksource/clocksource0";
const WORD: &str = "clocksource-switch";

/// The first clock source, which is restored when this is dropped. One test at a time has it.
struct ClockSource {
    first: String,
    _turn: MutexGuard<'static, ()>,
}

impl ClockSource {
    fn take() -> Option<Self> {
        static TURN: Mutex<()> = Mutex::new(());
        if !is_required(WORD) {
            not_run_here(WORD, "it would switch the clock source of the whole system");
            return None;
        }
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        Some(Self { first: current(), _turn: turn })
    }
}

impl Drop for ClockSource {
    fn drop(&mut self) {
        switch(&self.first);
    }
}

fn current() -> String {
    fs::read_to_string(format!("{FOLDER}/current_clocksource")).unwrap().trim().to_owned()
}

fn available() -> Vec<String> {
    let text = fs::read_to_string(format!("{FOLDER}/available_clocksource")).unwrap();
    text.split_whitespace().map(str::to_owned).collect()
}

fn switch(name: &str) {
    fs::write(format!("{FOLDER}/current_clocksource"), name).unwrap();
}

#[test]
fn every_function_stays_right_and_no_clock_goes_back() {
    let Some(source) = ClockSource::take() else { return };
    // The slots are filled while the first is there.
    PATHS.iter().for_each(assert_all_right);
    let mut switched = 0;
    let mut last = clock_gettime(ClockId::MONOTONIC).unwrap();
    for name in available().iter().chain([&source.first]) {
        let before = current();
        switch(name);
        // The kernel may refuse, and keep the one that it has.
        switched += u32::from(current() != before);
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
    assert!(switched > 0, "the kernel keeps {}", source.first);
}

#[cfg(feature = "counter")]
#[test]
fn the_counter_clock_falls_back_in_time_and_says_so() {
    use std::time::Instant;
    use test_support::oracle;
    use vdso_time::counter::{self, Status};

    /// Fails unless a read lies between the kernel's two, within the error bound.
    fn assert_near() {
        let kernel = || oracle::clock_gettime(libc::CLOCK_MONOTONIC).unwrap().as_nanos();
        let bound = counter::error_bound();
        let (before, now, after) = (kernel(), counter::monotonic() as i64, kernel());
        // A clock that waits for the kernel's comes nearer by as much time as passes.
        let bound = bound.max(counter::error_bound()) as i64 + 30 + kernel() - before;
        assert!(before - bound <= now && now <= after + bound, "{before} <= {now} <= {after}, {bound}");
    }

    let Some(source) = ClockSource::take() else { return };
    let wait_for = |status: Status, limit: u64| {
        let (start, mut last) = (Instant::now(), 0);
        while counter::status() != status && start.elapsed() < Duration::from_secs(limit) {
            let now = counter::monotonic();
            assert!(now >= last, "{now} after {last}");
            last = now;
        }
        counter::status() == status
    };
    if !wait_for(Status::Used, 10) {
        return not_run_here("counter", counter::status());
    }
    for other in available().iter().filter(|name| **name != source.first) {
        switch(other);
        let is_fast = oracle::counter_is_in_user_space();
        let is_noticed = wait_for(Status::ClockSource, 1);
        assert_near();
        switch(&source.first);
        // A clock source that the vDSO reads is noticed only when the two clocks differ.
        if is_fast == Some(false) {
            assert!(is_noticed, "{other}: {}", counter::status());
            return;
        }
        assert_near();
    }
    not_run_here(WORD, "there is no other clock source that the vDSO cannot read");
}
