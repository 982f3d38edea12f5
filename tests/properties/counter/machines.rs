//! Counters that must not be used, set wall clocks, sandboxes, and time namespaces.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;

use super::witness::{CALIBRATION, SEGMENT, Witness};
use super::world::{MICRO, MILLI, Machine, NANO, SECOND, machine};
use crate::cases::check;
use crate::source::status::{Refusal, State, Status};

/// Fails unless the kernel's clock answers, after an earlier segment has ended.
#[track_caller]
fn assert_off(witness: &Witness, refusal: Refusal) {
    let status = Status::Refused(refusal);
    assert_eq!(witness.status(), status);
    witness.watch(SEGMENT);
    let counted = witness.clock.statistics().vdso_reads;
    for _ in 0..100 {
        let before = witness.world.kernel();
        let nanos = witness.read().unwrap();
        assert!((before..=witness.world.kernel()).contains(&nanos), "{nanos} is not the kernel's time");
        let State { status: now, error_bound, frequency } = witness.clock.state();
        assert_eq!((now, error_bound, frequency), (status, Duration::ZERO, None));
    }
    // The kernel may be asked again during an interrupt.
    assert!(witness.clock.statistics().vdso_reads - counted < 10, "reads without the counter are counted");
}

#[test]
fn the_counter_is_used_if_the_kernel_trusts_it_and_else_not_even_read() {
    const RETRIES: &[(Option<Refusal>, u128)] = &[
        (Some(Refusal::Denied), SECOND),
        (Some(Refusal::Unknown), SECOND),
        (Some(Refusal::ClockSource), 10 * SECOND),
        (Some(Refusal::NotInvariant), 10 * SECOND),
        (Some(Refusal::NoCounter), 640 * SECOND),
        (None, 0),
    ];
    check(200, &(machine(), prop::sample::select(RETRIES)), |(machine, (refusal, retry))| {
        let witness = Witness::new(Machine { interrupts: 0, is_shared: false, ..machine });
        witness.world.refusal.set(refusal);
        assert_eq!(witness.clock.check(), refusal.map_or(Ok(()), Err));
        assert_eq!(witness.status(), Status::Calibrating, "a check changes nothing");
        witness.read();
        if let Some(refusal) = refusal {
            assert_off(&witness, refusal);
            let reads = witness.world.kernel_reads.get();
            assert!(witness.clock.slow_realtime().is_some());
            assert_eq!(witness.world.kernel_reads.get(), reads + 1);
            assert!(witness.clock.realtime_error_bound().is_some_and(|bound| bound < 200));
            assert_eq!(witness.world.read_at.get(), 0, "the counter was read");
        }
        witness.world.refusal.set(None);
        witness.world.pass(retry * 9 / 10);
        witness.watch(4 * CALIBRATION);
        assert_eq!(witness.settled(), refusal.map_or(Status::Used, Status::Refused), "asked again early");
        witness.world.pass(retry / 10);
        witness.watch(4 * CALIBRATION);
        assert_eq!((witness.settled(), witness.clock.check()), (Status::Used, Ok(())));
        let statistics = witness.clock.statistics();
        assert_eq!((statistics.refusals, statistics.last_refusal), (refusal.is_some().into(), refusal));
        true
    });
}

/// As on arm64, where an erratum of the counter makes the kernel trap reads by programs, and answer
/// the vDSO's callers by a system call. Its clock source is still the counter.
#[test]
fn a_counter_whose_reads_are_trapped_is_refused() {
    check(200, &(machine(), 200..2_000_u128, any::<bool>()), |(machine, nanos, is_trapped)| {
        let hertz = machine.hertz.max(100_000_000); // a trap must be more than some ticks
        let witness = Witness::new(Machine { hertz, stated_hertz: None, ..machine });
        witness.world.trap.set(if is_trapped { nanos * NANO } else { 0 });
        witness.world.syscall.set(if is_trapped { 200 * NANO } else { 0 });
        witness.is_accurate.set(false); // a read takes longer than the bound allows for
        witness.watch(8 * CALIBRATION);
        let expected = if is_trapped { Status::Refused(Refusal::Trapped) } else { Status::Used };
        assert_eq!(witness.settled(), expected);
        let statistics = witness.clock.statistics();
        assert_eq!(statistics.refusals, is_trapped.into());
        assert_eq!(statistics.last_refusal, is_trapped.then_some(Refusal::Trapped));
        is_trapped
    });
}

/// The vDSO then makes a system call, whose cost shows the switch. If the vDSO reads the other
/// source too, the kernel's next answer shows it, at most 10 s later. The kernel's clock may be
/// behind.
#[test]
fn a_switched_clock_source_is_noticed() {
    let cases = (machine(), prop_oneof![Just(0), 300..3_000_u128], 30_000..100_000_u128, any::<bool>());
    check(500, &cases, |(machine, nanos, micros, is_behind)| {
        let hertz = machine.hertz.max(20_000_000); // the cost must be more than a tick
        let witness = Witness::new(Machine { hertz, stated_hertz: None, ..machine });
        witness.watch(micros * MICRO);
        assert_eq!(witness.settled(), Status::Used);
        witness.world.set_slew(if is_behind { -100_000_000 } else { 0 });
        witness.world.refusal.set(Some(Refusal::ClockSource));
        witness.world.syscall.set(nanos * NANO);
        witness.world.pass(if nanos > 0 { 0 } else { 12 * SECOND });
        witness.tolerate(true, SEGMENT);
        assert_off(&witness, Refusal::ClockSource);
        true
    });
}

/// Every sample of the old rate is forgotten.
#[test]
fn after_a_move_to_a_host_with_another_rate_the_counter_is_measured_again() {
    check(100, &(machine(), 30..100_u128), |(machine, millis)| {
        let witness = Witness::new(Machine { interrupts: 0, ..machine });
        witness.watch(millis * MILLI);
        assert_eq!(witness.settled(), Status::Used);
        let hertz = (machine.hertz / 8 * 5).max(1_000_000);
        witness.world.migrate(hertz);
        witness.tolerate(true, 8 * SEGMENT + 4 * CALIBRATION);
        assert_eq!(witness.settled(), Status::Used);
        let measured = witness.clock.state().frequency.unwrap();
        assert!(measured.abs_diff(hertz) <= hertz / 100, "{measured} Hz, not {hertz}");
        true
    });
}

/// A calibration takes 11 ms. It begins again if the kernel's clock gets slower.
#[test]
fn a_disturbed_calibration_begins_again() {
    let syscall = prop::sample::select(&[0, 2_000 * NANO][..]);
    check(100, &(machine(), 2..9_u128, syscall), |(machine, millis, syscall)| {
        let hertz = machine.hertz.max(20_000_000); // the cost must be more than a tick
        let witness = Witness::new(Machine { hertz, stated_hertz: None, interrupts: 0, ..machine });
        let start = witness.world.kernel();
        witness.watch(millis * MILLI);
        assert_eq!(witness.settled(), Status::Calibrating);
        witness.world.syscall.set(syscall);
        witness.watch_until_used();
        let passed = (witness.world.kernel() - start) / 1_000_000;
        let calibrations = 1 + u64::from(syscall > 0);
        assert_eq!(witness.clock.statistics().calibrations, calibrations);
        assert!((11..14).contains(&passed) || calibrations > 1, "{passed} ms");
        // The rate is that of the whole calibration.
        let measured = witness.clock.state().frequency.unwrap();
        assert!(measured.abs_diff(hertz) <= hertz / 300_000 + 100, "{measured} Hz, not {hertz}");
        true
    });
}

#[test]
fn a_counter_with_another_rate_than_stated_or_possible_is_not_used() {
    let stated = (20_000_000..10_000_000_000_u64, prop_oneof![1011..2_000_u64, 500..989_u64])
        .prop_map(|(hertz, mille)| (hertz, Some(hertz / 1000 * mille)));
    let impossible = prop_oneof![0..900_000_u64, 70_000_000_000..500_000_000_000_u64];
    let rates = prop_oneof![stated, impossible.prop_map(|hertz| (hertz, None))];
    check(400, &(machine(), rates), |(machine, (hertz, stated_hertz))| {
        let witness = Witness::new(Machine { hertz, stated_hertz, ..machine });
        assert_eq!(witness.clock.check(), Ok(()));
        // An interrupt makes a calibration longer.
        (0..100).take_while(|_| witness.status() == Status::Calibrating).for_each(|_| witness.watch(MILLI));
        assert_off(&witness, Refusal::Frequency);
        assert_eq!(witness.clock.check(), Err(Refusal::Frequency));
        // The clock tries again after 10 s, 20 s, and so on, up to 640 s.
        if machine.interrupts > 0 {
            return true;
        }
        for seconds in [10, 20, 40, 80, 160, 320, 640, 640] {
            let refusals = witness.clock.statistics().refusals;
            witness.world.pass(seconds * SECOND - 2 * SECOND);
            witness.watch(4 * CALIBRATION);
            assert_eq!(witness.clock.statistics().refusals, refusals, "tried again early");
            witness.world.pass(2 * SECOND);
            witness.watch(4 * CALIBRATION);
            assert_eq!(witness.clock.statistics().refusals, refusals + 1);
        }
        true
    });
}

/// As [`Status::Calibrating`] says.
#[test]
fn reads_less_than_a_second_apart_measure_the_counter_and_others_do_not_read_it() {
    let millis = prop_oneof![2..990_u128, 1_001..5_000_u128];
    check(100, &(machine(), millis), |(machine, millis)| {
        let witness = Witness::new(Machine { interrupts: 0, ..machine });
        let read = || {
            assert!(witness.read().is_some());
            witness.world.pass(millis * MILLI);
        };
        read();
        let read_at = witness.world.read_at.get();
        (1..20).for_each(|_| read());
        let statistics = witness.clock.statistics();
        assert_eq!((statistics.calibrations, statistics.segments > 0), (1, millis < 1_000));
        if millis < 1_000 {
            return true;
        }
        assert_eq!(witness.world.read_at.get(), read_at, "the counter was read");
        assert_eq!(witness.status(), Status::Calibrating);
        // Two reads in a row begin again, because a suspend may have spoilt the old sample.
        witness.watch(60 * MICRO);
        assert_eq!(witness.clock.statistics().calibrations, 2);
        true
    });
}

/// Interrupts between the reads of two clocks do not look like a step.
#[test]
fn the_wall_clock_follows_steps_within_a_segment_and_ignores_interrupts() {
    let steps = vec((any::<i64>().prop_map(|nanos| nanos >> 4), 0..50_u128), 0..5);
    check(600, &(machine(), steps), |(machine, steps)| {
        let is_set = !steps.is_empty();
        let interrupts = if is_set { 0 } else { machine.interrupts };
        let witness = Witness::new(Machine { interrupts, ..machine });
        let watch_wall = |picos: u128| {
            for _ in 0..=picos / (50 * MICRO) {
                witness.read_wall();
                witness.world.pass(50 * MICRO);
            }
        };
        for (nanos, millis) in steps {
            watch_wall(millis * MILLI);
            witness.world.step(nanos);
            witness.watch(SEGMENT);
        }
        watch_wall(if is_set { 0 } else { SECOND });
        true
    });
}

/// Until the segment ends, its time is right. Then there is no time.
#[test]
fn a_denied_clock_returns_no_time_and_recovers() {
    let cases = (machine(), vec((any::<bool>(), 0..60_u128), 1..10));
    let reached = check(500, &cases, |(machine, turns)| {
        let witness = Witness::new(machine);
        let mut denials = 0;
        for (is_denied, millis) in turns {
            witness.world.is_denied.set(is_denied);
            let end = SEGMENT.min(millis * MILLI);
            witness.watch(end);
            if is_denied && end == SEGMENT && witness.read().is_none() {
                assert_eq!(witness.read_wall(), None);
                assert!(matches!(witness.status(), Status::Calibrating | Status::Stale));
                denials += 1;
            }
            witness.watch(millis * MILLI - end);
        }
        witness.world.is_denied.set(false);
        witness.watch(SEGMENT + 2 * CALIBRATION);
        assert_eq!(witness.settled(), Status::Used);
        denials > 0
    });
    assert!(reached > 0.5, "{reached} of the machines denied a read");
}

#[test]
fn suspends_that_spoil_calibrations_now_and_then_do_no_harm() {
    let cases = (machine(), prop_oneof![Just(8), Just(1_000)], any::<bool>());
    check(50, &cases, |(machine, millis, is_early)| {
        let witness = Witness::new(Machine { interrupts: 0, ..machine });
        let world = &witness.world;
        witness.is_accurate.set(false);
        for _ in 0..5 {
            witness.watch_until_used();
            if !is_early {
                witness.watch(8 * CALIBRATION);
                assert_eq!(witness.settled(), Status::Used);
            }
            world.suspend(SECOND, false);
            witness.watch(5 * MILLI);
            assert_eq!(witness.status(), Status::Calibrating);
            world.suspend(millis * MILLI, false);
            witness.watch_until_used();
            let measured = witness.clock.state().frequency.unwrap();
            assert!(measured.abs_diff(machine.hertz) <= machine.hertz / 100, "{measured} Hz");
        }
        true
    });
}

/// From the end of the segment on. A spoilt calibration can make one more wrong segment.
#[test]
fn the_clock_of_another_time_namespace_is_followed_within_the_error_bound() {
    let lead = (-4_000..4_000_i64, prop::sample::select(&[5_000, 50_000, 1_500_000, 1_000_000_000][..]));
    check(2_000, &(machine(), lead, 0..30_u128, any::<bool>()), |(machine, lead, millis, is_refused)| {
        let witness = Witness::new(machine);
        witness.world.refusal.set(is_refused.then_some(Refusal::ClockSource));
        let is_measured = millis > 15;
        witness.watch(if is_measured { 8 * CALIBRATION } else { 0 } + millis * MILLI);
        witness.world.enter_namespace(lead.0 * lead.1);
        witness.tolerate(false, if is_measured { SEGMENT } else { 2 * SEGMENT + 4 * CALIBRATION });
        witness.watch(8 * SEGMENT);
        assert_eq!(
            witness.settled(),
            if is_refused { Status::Refused(Refusal::ClockSource) } else { Status::Used }
        );
        true
    });
}

#[test]
fn the_time_stands_still_for_64_ms_at_most_in_another_time_namespace() {
    // A smaller step looks like a slew.
    let millis = prop_oneof![5..40_i64, 5..200_i64];
    let pause = prop_oneof![Just(0), 0..40_u64];
    check(500, &(machine(), millis, pause, any::<bool>()), |(machine, millis, pause, is_refused)| {
        let witness = Witness::new(Machine { interrupts: 0, ..machine });
        witness.watch(8 * CALIBRATION);
        let before = witness.read().unwrap();
        // The last segment may end 16 ms later.
        let is_waited_for = millis < 64 - 17;
        witness.world.refusal.set(is_refused.then_some(Refusal::ClockSource));
        witness.world.enter_namespace(-millis * 1_000_000);
        witness.world.pass(u128::from(pause) * MILLI);
        let mut turns = 0..2 * SEGMENT / (MILLI / 10);
        while witness.status() == Status::Used && turns.next().is_some() {
            witness.tolerate(is_waited_for, MILLI / 10);
        }
        assert_ne!(witness.status(), Status::Used);
        witness.tolerate(is_waited_for, MILLI / 10); // the rest of the old segment
        assert!(witness.clock.error_bound() <= 64_000_000);
        assert!(
            millis <= 64 || witness.read().unwrap() < before + pause * 1_000_000,
            "{millis} ms are waited for"
        );
        // What is not waited for at first is not waited for later.
        let mut most = witness.clock.error_bound().max(10_000_000);
        for _ in 0..8 * 17 {
            witness.watch(MILLI);
            let bound = witness.clock.error_bound();
            assert!(bound <= most, "{bound} ns after {most} ns");
            most = bound.max(10_000_000);
        }
        true
    });
}
