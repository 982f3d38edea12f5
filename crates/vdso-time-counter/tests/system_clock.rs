//! Tests of the counter clock while root changes the system's clock: its clock source and its rate.
//!
//! That affects the whole system, so these tests run only in a system that was started for them.
//! cargo runs test programs in the order of their names, so this one runs last.

#![allow(unsafe_code, reason = "adjtimex(2) is called here")]
#![cfg(any(target_os = "linux", target_os = "android"))]

use std::env;
use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use test_support::{child, not_run_here, oracle};
use vdso_time_counter::{
    self as counter, CounterMonotonic, CounterMonotonicUnordered, Status, Unavailable,
};

const DIRECTORY: &str = "/sys/devices/system/clocksource/clocksource0";

/// The environment variable that is set where a test may change the clock of the whole system, as
/// in a guest.
const MAY_CHANGE_CLOCK: &str = "VDSO_TIME_TEST_MAY_CHANGE_CLOCK";

/// Waits until no other test changes the system, and returns the lock that keeps other tests from
/// doing so. Returns `None` if tests must not change the clock here.
fn turn() -> Option<MutexGuard<'static, ()>> {
    static TURN: Mutex<()> = Mutex::new(());
    if env::var_os(MAY_CHANGE_CLOCK).is_none() {
        not_run_here("it would change the clock of the whole system");
        return None;
    }
    Some(TURN.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Reads a file about the clock source.
fn read(file: &str) -> String {
    fs::read_to_string(format!("{DIRECTORY}/{file}"))
        .unwrap()
        .trim()
        .to_owned()
}

/// Makes another clock source the current one.
fn switch(name: &str) {
    fs::write(format!("{DIRECTORY}/current_clocksource"), name).unwrap();
}

fn kernel() -> i64 {
    oracle::clock_gettime(libc::CLOCK_MONOTONIC)
        .unwrap()
        .as_nanos() as i64
}

/// Reads until the status is `expected`, for at most `seconds`. Returns the last status.
fn read_until(expected: Status, seconds: u64) -> Status {
    let start = Instant::now();
    loop {
        let _ = CounterMonotonicUnordered::now();
        let status = counter::state().status;
        if status == expected || start.elapsed() > Duration::from_secs(seconds) {
            return status;
        }
    }
}

/// Fails unless the status becomes `expected`. The clock needs up to 10 s of reads to notice a new
/// verdict of the kernel, and a calibration takes longer on a busy machine.
#[track_caller]
fn settle(expected: Status) {
    assert_eq!(read_until(expected, 60), expected);
}

/// Returns whether the counter is used after calibration, or records the test as not run.
fn is_used() -> bool {
    let status = read_until(Status::Used, 5);
    if status != Status::Used {
        not_run_here(format!("the counter is not used: {status}"));
    }
    status == Status::Used
}

/// Sets the rate of the kernel's clock to the usual rate plus `tick` thousandths, which change the
/// length of a timer tick, plus `ppm` millionths.
fn adjust([tick, ppm]: [i16; 2]) {
    // SAFETY: every field is a number.
    let mut change: libc::timex = unsafe { std::mem::zeroed() };
    change.modes = libc::ADJ_TICK | libc::ADJ_FREQUENCY;
    change.tick = (10_000 + 10 * tick).into();
    change.freq = (i32::from(ppm) << 16).into();
    // SAFETY: the call reads and writes one `timex`.
    let status = unsafe { libc::adjtimex(&raw mut change) };
    assert!(status >= 0, "adjtimex: {}", std::io::Error::last_os_error());
}

/// Gives the kernel's clock its usual rate again, even if the test fails.
struct UsualRate;

impl Drop for UsualRate {
    fn drop(&mut self) {
        adjust([0, 0]);
    }
}

/// The longest time for which the clock may stand still, in nanoseconds.
const STANDSTILL: i64 = 10_000;

#[test]
fn slews_of_ten_percent_keep_the_clock_within_its_bound_and_moving() {
    let Some(_turn) = turn() else {
        return;
    };
    let _usual_rate = UsualRate;
    let end = child::end_of(|| {
        if !is_used() {
            return true;
        }
        let rates = [
            [100, 500],
            [-100, -500],
            [0, 500],
            [1, 0],
            [-83, 0],
            [0, -500],
        ];
        let mut last = 0;
        let mut last_since = kernel();
        let mut largest = 0;
        let mut longest = 0;
        for rate in rates.iter().cycle().take(100) {
            adjust(*rate);
            let start = kernel();
            while kernel() - start < 40_000_000 {
                let first = kernel();
                let bound = counter::state().error_bound;
                let before = kernel();
                let now = CounterMonotonic::now().as_nanos();
                let after = kernel();
                let bound = bound.max(counter::state().error_bound).as_nanos() as i64;
                let error = (before - now).max(now - after);
                // If the guest is paused between these calls, one segment can be off, and the next
                // one removes the error. The error is at most a fifth of the time that has passed,
                // because the rate changes from -10 % to +10 %.
                let bound = bound + (kernel() - first) / 5;
                assert!(error <= bound, "{rate:?}: {error} ns, and not {bound}");
                assert!(now >= last, "{rate:?}: {now} after {last}");
                if now > last {
                    last = now;
                    last_since = after;
                }
                assert!(
                    before - last_since <= STANDSTILL,
                    "{rate:?}: it stands still for {} ns",
                    before - last_since
                );
                largest = error.max(largest);
                longest = (before - last_since).max(longest);
            }
        }
        adjust([0, 0]);
        println!("largest error {largest} ns, longest standstill {longest} ns");
        settle(Status::Used);
        true
    });
    assert_eq!(end, child::SUCCESS);
}

#[test]
fn a_switched_clock_source_is_followed_both_ways() {
    let Some(_turn) = turn() else {
        return;
    };
    let first = read("current_clocksource");
    let available = read("available_clocksource");
    // Under kvm-clock the counter is used as well.
    let is_other = |name: &&str| *name != first && *name != KVM_CLOCK;
    let Some(other) = available.split_whitespace().find(is_other) else {
        return not_run_here(format!("the kernel has no other clock source: {available}"));
    };
    let restore = Restore(first);
    // The first process calibrates before the switch. The second one reads the clock for the first
    // time after the switch.
    for is_calibrated in [true, false] {
        let child = child::fork(|| {
            if let Err(status) = counter::check() {
                not_run_here(format!("the counter is not used: {status}"));
                return true;
            }
            if is_calibrated && !is_used() {
                return true;
            }
            switch(other);
            settle(Status::Unavailable(Unavailable::ClockSource));
            switch(&restore.0);
            settle(Status::Used);
            true
        });
        assert_eq!(child::wait(child, 2 * child::LIMIT), child::SUCCESS);
    }
}

const KVM_CLOCK: &str = "kvm-clock";

/// Restores the clock source that the test began with, even if the test fails.
struct Restore(String);

impl Drop for Restore {
    fn drop(&mut self) {
        switch(&self.0);
    }
}

/// Runs on any KVM guest that has both sources, as root: `VDSO_TIME_TEST_MAY_CHANGE_CLOCK=1 cargo
/// test --release -p vdso-time-counter --test system_clock kvm_clock -- --ignored --nocapture`.
/// With `RUSTFLAGS="--cfg vdso_time_not_invariant"` the clock treats the CPU as one without the
/// invariant bit.
#[test]
#[ignore = "needs a KVM guest that has kvm-clock, and CI has none"]
fn kvm_clock_is_followed_within_the_error_bound() {
    let Some(_turn) = turn() else {
        return;
    };
    if !read("available_clocksource")
        .split_whitespace()
        .any(|name| name == KVM_CLOCK)
    {
        return not_run_here("the kernel has no kvm-clock");
    }
    let restore = Restore(read("current_clocksource"));
    switch(KVM_CLOCK);
    let child = child::fork(|| {
        if cfg!(vdso_time_not_invariant) {
            assert_eq!(counter::check(), Err(Unavailable::NotInvariant));
            counter::trust_hypervisor().unwrap();
        }
        assert_eq!(counter::check(), Ok(()));
        // The third switch tests a process that was calibrated under the other source.
        for source in [KVM_CLOCK, &restore.0, KVM_CLOCK] {
            switch(source);
            if source != KVM_CLOCK && cfg!(vdso_time_not_invariant) {
                continue; // the vDSO answers
            }
            settle(Status::Used);
            let start = kernel();
            let mut last = 0;
            let mut largest = 0;
            let mut reads = 0_u64;
            while kernel() - start < 1_000_000_000 {
                let bound = counter::state().error_bound.as_nanos() as i64;
                for _ in 0..100 {
                    let before = kernel();
                    let now = CounterMonotonic::now().as_nanos();
                    let after = kernel();
                    let error = (before - now).max(now - after);
                    let bound = bound.max(counter::state().error_bound.as_nanos() as i64);
                    assert!(error <= bound, "{source}: {error} ns, and not {bound}");
                    assert!(now >= last, "{source}: {now} after {last}");
                    last = now;
                    largest = largest.max(error);
                    reads += 1;
                }
            }
            println!(
                "{source}: {reads} reads, the largest error outside of two reads is {largest} ns"
            );
            println!("{:?} {:?}", counter::state(), counter::state().statistics);
        }
        true
    });
    assert_eq!(child::wait(child, 3 * child::LIMIT), child::SUCCESS);
}
