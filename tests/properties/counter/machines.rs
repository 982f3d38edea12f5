//! Counters that must not be used, set wall clocks, sandboxes, and time namespaces.

use proptest::collection::vec;
use proptest::prelude::*;

use super::witness::{CALIBRATION, SEGMENT, Witness};
use super::world::{MICRO, MILLI, Machine, NANO, SECOND, machine};
use crate::cases::check;
use crate::source::status::{State, Status};

/// Fails unless the kernel's clock answers, after an earlier segment has ended.
#[track_caller]
fn assert_off(witness: &Witness, status: Status) {
    assert_eq!(witness.clock.status(), status);
    witness.watch(SEGMENT);
    let counted = witness.clock.statistics().vdso_reads;
    for _ in 0..100 {
        let before = witness.world.kernel();
        let nanos = witness.read().unwrap();
        assert!((before..=witness.world.kernel()).contains(&nanos), "{nanos} is not the kernel's time");
        assert_eq!(witness.clock.state(), State { status, error_bound: 0, frequency: None });
        assert_eq!((witness.clock.status(), witness.clock.frequency()), (status, None));
    }
    // The kernel may be asked again during an interrupt.
    assert!(witness.clock.statistics().vdso_reads - counted < 10, "reads without the counter are counted");
}

#[test]
fn the_counter_is_used_if_the_kernel_trusts_it_and_else_not_even_read() {
    const RETRIES: &[(Option<Status>, u128)] = &[
        (Some(Status::Denied), SECOND),
        (Some(Status::Unknown), SECOND),
        (Some(Status::ClockSource), 10 * SECOND),
        (Some(Status::NotInvariant), 10 * SECOND),
        (Some(Status::NoCounter), 640 * SECOND),
        (None, 0),
    ];
    check(200, &(machine(), prop::sample::select(RETRIES)), |(machine, (refusal, retry))| {
        let witness = Witness::new(Machine { interrupts: 0, is_shared: false, ..machine });
        witness.world.refusal.set(refusal);
        assert_eq!(witness.clock.check(), refusal.map_or(Ok(()), Err));
        assert_eq!(witness.clock.status(), Status::Calibrating, "a check changes nothing");
        witness.read();
        if let Some(status) = refusal {
            assert_off(&witness, status);
            let reads = witness.world.kernel_reads.get();
            assert!(witness.clock.slow_realtime().is_some());
            assert_eq!(witness.world.kernel_reads.get(), reads + 1);
            assert!(witness.clock.wall_bound(0).is_some_and(|bound| bound < 200));
            assert_eq!(witness.world.read_at.get(), 0, "the counter was read");
        }
        witness.world.refusal.set(None);
        witness.world.pass(retry * 9 / 10);
        witness.watch(4 * CALIBRATION);
        assert_eq!(witness.settled(), refusal.unwrap_or(Status::Used), "asked again early");
        witness.world.pass(retry / 10);
        witness.watch(4 * CALIBRATION);
        assert_eq!((witness.settled(), witness.clock.check()), (Status::Used, Ok(())));
        let statistics = witness.clock.statistics();
        assert_eq!((statistics.refusals, statistics.last_refusal), (refusal.is_some().into(), refusal));
        let by_reason = Status::ALL.iter().filter(|reason| statistics.refusals_by(**reason) == 1);
        assert!(by_reason.eq(refusal.iter()), "{statistics:?}");
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
        let expected = if is_trapped { Status::Trapped } else { Status::Used };
        assert_eq!(witness.settled(), expected);
        assert_eq!(witness.clock.statistics().refusals_by(Status::Trapped), is_trapped.into());
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
        witness.world.refusal.set(Some(Status::ClockSource));
        witness.world.syscall.set(nanos * NANO);
        witness.world.pass(if nanos > 0 { 0 } else { 12 * SECOND });
        witness.tolerate(true, SEGMENT);
        assert_off(&witness, Status::ClockSource);
        true
    });
}

/// The hypervisor's marker shows it even if the clocks agree.
#[test]
fn a_moved_machine_is_measured_again_at_the_next_segment() {
    check(100, &(machine(), 30..100_u128), |(machine, millis)| {
        let witness = Witness::new(Machine { interrupts: 0, ..machine });
        witness.watch(millis * MILLI);
        assert_eq!(witness.settled(), Status::Used);
        let before = witness.clock.statistics().calibrations;
        witness.world.disruption.set(1);
        witness.watch(SEGMENT + CALIBRATION);
        assert_eq!(witness.settled(), Status::Used);
        assert_eq!(witness.clock.statistics().calibrations, before + 1);
        // The samples of the old rate are forgotten.
        let hertz = (machine.hertz / 4 * 3).max(1_000_000);
        witness.world.migrate(hertz);
        witness.world.disruption.set(2);
        witness.tolerate(true, 8 * SEGMENT + 4 * CALIBRATION);
        assert_eq!(witness.settled(), Status::Used);
        let measured = witness.clock.baseline().unwrap().frequency();
        assert!(measured.abs_diff(hertz) <= hertz / 100, "{measured} Hz, not {hertz}");
        true
    });
}

/// A calibration takes 11 ms. It begins again if the machine is moved or its clock gets slower.
#[test]
fn a_disturbed_calibration_begins_again() {
    let disturbances = prop::sample::select(&[[0, 0], [1, 0], [0, 2_000 * NANO]][..]);
    check(100, &(machine(), 2..9_u128, disturbances), |(machine, millis, [disruption, syscall])| {
        let hertz = machine.hertz.max(20_000_000); // the cost must be more than a tick
        let witness = Witness::new(Machine { hertz, stated_hertz: None, interrupts: 0, ..machine });
        let start = witness.world.kernel();
        witness.watch(millis * MILLI);
        assert_eq!(witness.settled(), Status::Calibrating);
        witness.world.disruption.set(disruption as u32);
        witness.world.syscall.set(syscall);
        witness.watch_until_used();
        let passed = (witness.world.kernel() - start) / 1_000_000;
        let calibrations = 1 + u64::from(disruption + syscall > 0);
        assert_eq!(witness.clock.statistics().calibrations, calibrations);
        assert!((11..14).contains(&passed) || calibrations > 1, "{passed} ms");
        // The rate is that of the whole calibration.
        let measured = witness.clock.frequency().unwrap();
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
        (0..100)
            .take_while(|_| witness.clock.status() == Status::Calibrating)
            .for_each(|_| witness.watch(MILLI));
        assert_off(&witness, Status::Frequency);
        assert_eq!(witness.clock.check(), Err(Status::Frequency));
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
        assert_eq!(witness.clock.status(), Status::Calibrating);
        // Two reads in a row begin again, because a suspend may have spoilt the old sample.
        witness.watch(60 * MICRO);
        assert_eq!(witness.clock.statistics().calibrations, 2);
        true
    });
}

/// Even if the kernel did not find it. A smaller difference looks like a slew. After that, one
/// spoilt calibration or one suspend is no reason to give the counter up again.
#[test]
fn cpus_that_disagree_are_found() {
    let skew = prop_oneof![10_000_000..20_000_000_i64, 20_000_000..100_000_000_000_i64];
    let found = check(500, &(machine(), skew, any::<bool>()), |(machine, skew, is_behind)| {
        let skew = if is_behind { -skew } else { skew };
        let witness = Witness::new(Machine { skew, ..machine });
        let mut passed = 0;
        // Without interrupts, whose readers would expect an accurate time.
        let status = || witness.world.foresee(0, || witness.clock.status());
        while !matches!(status(), Status::CpusDisagree | Status::Frequency) {
            witness.world.cpu.set(witness.world.random(2) as u32);
            let picos = u128::from(witness.world.random(20_000)) * MICRO;
            witness.tolerate(false, picos);
            passed += picos;
            assert!(passed < 20 * SECOND, "not found: {}", status());
        }
        witness.tolerate(false, SEGMENT);
        let status = witness.clock.status();
        assert_off(&witness, status);
        witness.world.repair();
        witness.world.pass(11 * SECOND);
        witness.watch(5 * MILLI);
        for _ in 0..2 {
            assert_eq!(witness.clock.statistics().refusals, 1);
            witness.world.cpu.set(1 - witness.world.cpu.get());
            witness.world.suspend(SECOND, false);
            witness.tolerate(true, SEGMENT + 4 * CALIBRATION);
            assert_eq!(witness.settled(), Status::Used);
        }
        status == Status::CpusDisagree
    });
    assert!(found > 0.1, "{found} of the machines were given up for their CPUs");
}

/// A CPU that agrees with itself after each move is no reason to trust it.
#[test]
fn cpus_that_disagree_are_found_if_the_reader_moves_seldom() {
    check(30, &(machine(), 20_000_000..100_000_000_000_i64), |(machine, skew)| {
        let witness = Witness::new(Machine { skew, interrupts: 0, ..machine });
        for cpu in [0, 1, 0, 1] {
            witness.world.cpu.set(cpu);
            witness.tolerate(false, 8 * CALIBRATION);
        }
        assert_off(&witness, Status::CpusDisagree);
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
                assert!(matches!(witness.clock.status(), Status::Calibrating | Status::Stale));
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

/// Neither do those that come with a move to the other CPU, whose counter agrees in between.
#[test]
fn suspends_that_spoil_calibrations_now_and_then_do_no_harm() {
    let millis = prop_oneof![Just(8), Just(1_000)];
    let cases = (machine(), millis, any::<[bool; 4]>());
    check(50, &cases, |(machine, millis, [hides_cpu, is_moved, is_marked, is_early])| {
        let witness = Witness::new(Machine { interrupts: 0, ..machine });
        let world = &witness.world;
        world.hides_cpu.set(hides_cpu);
        witness.is_accurate.set(false);
        for round in 1..6 {
            witness.watch_until_used();
            if !is_early {
                world.cpu.set(if is_moved { round % 2 } else { 0 });
                witness.watch(8 * CALIBRATION);
                assert_eq!(witness.settled(), Status::Used);
                world.cpu.set(0);
            }
            world.disruption.set(if is_marked { round } else { 0 });
            world.suspend(SECOND, false);
            witness.watch(5 * MILLI);
            assert_eq!(witness.clock.status(), Status::Calibrating);
            world.suspend(millis * MILLI, false);
            witness.watch_until_used();
            let measured = witness.clock.frequency().unwrap();
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
        witness.world.refusal.set(is_refused.then_some(Status::ClockSource));
        let is_measured = millis > 15;
        witness.watch(if is_measured { 8 * CALIBRATION } else { 0 } + millis * MILLI);
        witness.world.enter_namespace(lead.0 * lead.1);
        witness.tolerate(false, if is_measured { SEGMENT } else { 2 * SEGMENT + 4 * CALIBRATION });
        witness.watch(8 * SEGMENT);
        assert_eq!(witness.settled(), if is_refused { Status::ClockSource } else { Status::Used });
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
        witness.world.refusal.set(is_refused.then_some(Status::ClockSource));
        witness.world.enter_namespace(-millis * 1_000_000);
        witness.world.pass(u128::from(pause) * MILLI);
        let mut turns = 0..2 * SEGMENT / (MILLI / 10);
        while witness.clock.status() == Status::Used && turns.next().is_some() {
            witness.tolerate(is_waited_for, MILLI / 10);
        }
        assert_ne!(witness.clock.status(), Status::Used);
        witness.tolerate(is_waited_for, MILLI / 10); // the rest of the old segment
        assert!(witness.clock.state().error_bound <= 64_000_000);
        assert!(
            millis <= 64 || witness.read().unwrap() < before + pause * 1_000_000,
            "{millis} ms are waited for"
        );
        // What is not waited for at first is not waited for later.
        let mut most = witness.clock.state().error_bound.max(10_000_000);
        for _ in 0..8 * 17 {
            witness.watch(MILLI);
            let bound = witness.clock.state().error_bound;
            assert!(bound <= most, "{bound} ns after {most} ns");
            most = bound.max(10_000_000);
        }
        true
    });
}
