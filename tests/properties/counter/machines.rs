//! Machines on which the counter must be given up, people who set the wall clock, and sandboxes that deny it.

use std::cell::Cell;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::cases::check;
use crate::life::{hertz, machine};
use crate::status::{State, Status};
use crate::witness::Witness;
use crate::world::{MICRO, MILLI, Machine, NANO, SECOND};

/// The longest line.
const LINE: u128 = 17 * MILLI;
/// Until the counter is used.
const CALIBRATION: u128 = 13 * MILLI;

/// Fails unless the kernel's clock answers from now on, or the floor until that has reached it.
#[track_caller]
fn assert_off(witness: &Witness, status: Status) {
    assert_eq!(witness.status(), status);
    witness.watch(LINE);
    for _ in 0..100 {
        let before = witness.world.kernel();
        let nanos = witness.read().unwrap();
        assert!(before <= nanos && nanos <= witness.world.kernel(), "{nanos} is not the kernel's time");
        assert_eq!(witness.state(), State { status, error_bound: 0, frequency: None });
        assert_eq!((witness.status(), witness.frequency()), (status, None));
    }
}

#[test]
fn a_counter_that_the_kernel_does_not_trust_is_not_used() {
    let statuses =
        [Status::NoCounter, Status::Denied, Status::Unknown, Status::ClockSource, Status::NotInvariant];
    check(100, &(machine(), prop::sample::select(statuses.to_vec())), |(machine, status)| {
        let witness = Witness::new(machine);
        witness.world.verdict.set(Err(status));
        assert_eq!(witness.status(), Status::Calibrating);
        witness.read();
        assert_off(&witness, status);
        assert_eq!(witness.world.read_at.get(), 0, "the counter was read");
        true
    });
}

/// What was refused to one thread, or could not be opened just then, is asked again; what the kernel said for good is not.
#[test]
fn a_refusal_is_asked_again_after_a_second() {
    let statuses = [Status::Denied, Status::Unknown, Status::ClockSource];
    check(100, &(machine(), prop::sample::select(statuses.to_vec())), |(machine, status)| {
        let witness = Witness::new(machine);
        witness.world.verdict.set(Err(status));
        witness.watch(100 * MILLI);
        assert_eq!(witness.status(), status);
        witness.world.verdict.set(Ok(()));
        witness.watch(1200 * MILLI);
        let expected = if status == Status::ClockSource { status } else { Status::Used };
        assert_eq!(witness.settled(), expected);
        true
    });
}

/// The vDSO asks the kernel then, which takes its time: that is how it is noticed.
#[test]
fn a_clock_source_that_is_switched_is_noticed_within_a_line() {
    let cases = (machine(), 300..3_000_u128, 30..100_u128);
    check(500, &cases, |(machine, dear, millis)| {
        // Or the cost is less than a tick.
        let hertz = machine.hertz.max(20_000_000);
        let machine = Machine { hertz, stated: machine.stated.map(|_| hertz), ..machine };
        let witness = Witness::new(machine);
        witness.watch(millis * MILLI);
        assert_eq!(witness.settled(), Status::Used);
        witness.world.verdict.set(Err(Status::ClockSource));
        witness.world.dear.set(dear * NANO);
        // Where the line is given up before its end, the floor is its end.
        witness.is_calm.set(false);
        witness.watch(LINE);
        witness.is_calm.set(true);
        assert_off(&witness, Status::ClockSource);
        true
    });
}

#[test]
fn a_counter_with_another_rate_than_stated_is_not_used() {
    let cases = (machine(), prop_oneof![101..200_u64, 50..99_u64], 2..20_u64);
    check(300, &cases, |(machine, percent, off)| {
        let hertz = machine.hertz.max(20_000_000);
        // The one is stated as the other, or a bit more than a hundredth is missing.
        let stated = if percent % 2 == 0 { hertz / 100 * percent } else { hertz + hertz / 1000 * (10 + off) };
        let witness = Witness::new(Machine { hertz, stated: Some(stated), ..machine });
        witness.watch(4 * CALIBRATION);
        assert_off(&witness, Status::Frequency);
        true
    });
    let odd = prop_oneof![0..900_000_u64, 70_000_000_000..500_000_000_000_u64];
    check(100, &(machine(), odd), |(machine, hertz)| {
        let witness = Witness::new(Machine { hertz, stated: None, ..machine });
        witness.watch(4 * CALIBRATION);
        assert_off(&witness, Status::Frequency);
        true
    });
}

#[test]
fn any_rate_of_a_counter_is_measured() {
    check(300, &(machine(), hertz()), |(machine, hertz)| {
        let witness = Witness::new(Machine { hertz, stated: machine.stated.map(|_| hertz), ..machine });
        assert_eq!(witness.frequency(), None);
        witness.watch(SECOND / 2);
        assert_eq!(witness.settled(), Status::Used);
        let measured = witness.frequency().unwrap();
        // 10 ppm; and what a tick is of the second half of it.
        assert!(measured.abs_diff(hertz) <= hertz / 100_000 + 200, "{measured} Hz for {hertz}");
        true
    });
}

/// The kernel would have found it; where it did not, the clock does.
#[test]
fn cpus_that_disagree_are_found() {
    let skew = prop_oneof![40_000..10_000_000_i64, 10_000_000..100_000_000_000_i64];
    let cases = (machine(), skew, any::<bool>(), 1..100_u64);
    let (frequency, longest) = (Cell::new(0), Cell::new(0));
    check(500, &cases, |(machine, skew, is_behind, gap)| {
        let skew = if is_behind { -skew } else { skew };
        let witness = Witness::new(Machine { skew, ..machine });
        witness.is_calm.set(false);
        witness.is_ordered.set(false);
        let mut passed = 0;
        while !matches!(witness.status(), Status::CpusDisagree | Status::Frequency) {
            witness.world.move_to(witness.world.random(2) as u32);
            for _ in 0..=witness.world.random(400) {
                witness.read();
                witness.world.pass(u128::from(gap) * MICRO);
                passed += u128::from(gap) * MICRO;
            }
            assert!(passed < 20 * SECOND, "after all that time: {}", witness.status());
        }
        let status = witness.status();
        longest.set(longest.get().max(passed));
        frequency.set(frequency.get() + u32::from(status == Status::Frequency));
        witness.watch(LINE);
        witness.is_calm.set(true);
        witness.is_ordered.set(true);
        assert_off(&witness, status);
        true
    });
    println!(
        "skewed CPUs: {} of the machines were given up for their rate; all within {} ms",
        frequency.get(),
        longest.get() / MILLI
    );
}

#[test]
fn a_step_of_the_wall_clock_is_seen_at_the_next_line() {
    let steps = vec((any::<i64>().prop_map(|nanos| nanos >> 4), 0..50_u128), 0..5);
    check(300, &(machine(), steps), |(machine, steps)| {
        let witness = Witness::new(Machine { interrupts: 0, ..machine });
        let look = || {
            let off = witness.wall().unwrap();
            let bound = witness.state().error_bound;
            assert!(off <= bound + 100, "off by {off} ns, {bound} being the bound");
        };
        for (nanos, millis) in steps {
            for _ in 0..millis * 20 {
                look();
                witness.world.pass(50 * MICRO);
            }
            witness.world.step(nanos);
            witness.watch(LINE);
        }
        look();
        true
    });
}

/// An interrupt between the reads of two clocks is not a step.
#[test]
fn the_wall_clock_is_not_moved_by_interrupts() {
    check(300, &machine(), |machine| {
        let witness = Witness::new(machine);
        let mut bound = 0;
        for _ in 0..20_000 {
            let off = witness.wall().unwrap();
            bound = match witness.state().error_bound {
                0 => bound,
                bound => bound,
            };
            assert!(off <= bound + 200, "off by {off} ns, {bound} being the bound");
            witness.world.pass(50 * MICRO);
        }
        true
    });
}

/// A denied clock has no time, or that of a line until this ends: never a wrong one.
#[test]
fn a_clock_that_is_denied_and_allowed_again() {
    let cases = (machine(), vec((any::<bool>(), 0..60_u128), 1..10));
    check(500, &cases, |(machine, turns)| {
        let witness = Witness::new(machine);
        let mut left = 0;
        for (is_denied, millis) in turns {
            witness.world.is_denied.set(is_denied);
            let end = LINE.min(millis * MILLI);
            witness.watch(end);
            if is_denied && end == LINE && witness.read().is_none() {
                assert_eq!(witness.wall(), None);
                assert!(matches!(witness.status(), Status::Calibrating | Status::Stale));
                left += 1;
            }
            witness.watch(millis * MILLI - end);
        }
        witness.world.is_denied.set(false);
        witness.watch(LINE + 2 * CALIBRATION);
        assert_eq!(witness.settled(), Status::Used);
        left > 0
    });
}

/// A system that sleeps often spoils many a calibration, but not one after the other.
#[test]
fn suspends_that_spoil_calibrations_now_and_then_do_no_harm() {
    check(50, &machine(), |machine| {
        let witness = Witness::new(Machine { interrupts: 0, ..machine });
        witness.world.tells_cpu.set(false);
        witness.is_calm.set(false);
        for _ in 0..5 {
            witness.watch(8 * CALIBRATION);
            assert_eq!(witness.settled(), Status::Used);
            witness.world.suspend(SECOND, false);
            witness.watch(5 * MILLI);
            assert_eq!(witness.status(), Status::Calibrating);
            witness.world.suspend(SECOND, false);
        }
        true
    });
}
