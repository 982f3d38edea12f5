//! When the counter is measured, and when the vDSO answers.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::witness::{CALIBRATION, SEGMENT, Witness, check, statistics};
use super::world::{MICRO, MILLI, NANO, SECOND, machines, quiet_machines};
use crate::cases;
use crate::engine::source::Source;
use crate::engine::status::Status;

/// Disturbs a calibration, which takes 11 ms: it begins again if the kernel's clock gets slower.
#[test]
fn a_disturbed_calibration_begins_again() {
    // The cost must be more than a tick.
    let cases = (2..9_u128, select(&[0, 2_000 * NANO][..]));
    check(
        100,
        quiet_machines(20_000_000),
        cases,
        |witness, (millis, syscall)| {
            let Witness {
                machine,
                world,
                clock,
                ..
            } = witness;
            let start = world.kernel();
            witness.watch(millis * MILLI);
            assert_eq!(witness.settled(), Status::Calibrating);
            world.syscall.set(syscall); // a slower CPU, on which a system call takes longer as well
            world.entry.set(10 * syscall);
            witness.watch_until_used();
            let passed = (world.kernel() - start) / 1_000_000;
            let calibrations = 1 + u64::from(syscall > 0);
            assert_eq!(statistics(clock).calibrations, calibrations);
            assert!(
                (11..14).contains(&passed) || calibrations > 1,
                "{passed} ms"
            );
            // The rate is the mean rate of the whole calibration.
            witness.assert_frequency(machine.hertz, machine.hertz / 300_000 + 100);
        },
    );
}

/// Changes, during a calibration, whether `CLOCK_MONOTONIC_RAW` is denied. A seccomp filter belongs
/// to one thread, so of the threads that calibrate together some can have it and some not.
#[test]
fn a_calibration_succeeds_if_only_some_threads_may_read_clock_monotonic_raw() {
    let cases = (any::<bool>(), 0..CALIBRATION / MICRO);
    check(
        200,
        quiet_machines(0),
        cases,
        |witness, (is_denied, micros)| {
            let Witness {
                machine,
                world,
                clock,
                ..
            } = witness;
            world.is_raw_denied.set(is_denied);
            witness.watch(micros * MICRO);
            world.is_raw_denied.set(!is_denied);
            witness.watch_until_used();
            assert_eq!(statistics(clock).calibrations, 1);
            witness.assert_frequency(machine.hertz, machine.hertz / 100_000 + 200);
        },
    );
}

#[test]
fn suspends_that_corrupt_calibrations_now_and_then_do_no_harm() {
    let cases = (prop_oneof![Just(8), Just(1_000)], any::<bool>());
    check(
        50,
        quiet_machines(0),
        cases,
        |witness @ Witness { machine, world, .. }, (millis, is_early)| {
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
                witness.assert_frequency(machine.hertz, machine.hertz / 100);
            }
        },
    );
}

/// Moves the machine. The clock must forget every sample of the old rate.
#[test]
fn after_a_move_to_a_host_with_another_rate_the_counter_is_measured_again() {
    check(
        100,
        quiet_machines(1_600_000),
        30..100_u128,
        |witness, millis| {
            witness.watch(millis * MILLI);
            assert_eq!(witness.settled(), Status::Used);
            let hertz = witness.machine.hertz / 8 * 5;
            witness.world.migrate(hertz);
            witness.tolerate(true, 8 * SEGMENT + 4 * CALIBRATION);
            assert_eq!(witness.settled(), Status::Used);
            witness.assert_frequency(hertz, hertz / 100);
            assert!(
                statistics(&witness.clock).steps > 0,
                "the move is not counted"
            );
        },
    );
}

/// Reads in intervals on both sides of the second that [`Status::Calibrating`] names.
#[test]
fn reads_less_than_a_second_apart_measure_the_counter_and_others_do_not_read_it() {
    let millis = prop_oneof![2..990_u128, 1_001..5_000_u128];
    check(
        100,
        quiet_machines(0),
        millis,
        |witness @ Witness { world, clock, .. }, millis| {
            let read = || {
                assert!(witness.read().is_some());
                world.pass(millis * MILLI);
            };
            read();
            let read_at = world.read_at.get();
            (1..20).for_each(|_| read());
            let counted = statistics(clock);
            assert_eq!(
                (counted.calibrations, counted.segments > 0),
                (1, millis < 1_000)
            );
            if millis > 1_000 {
                assert_eq!(world.read_at.get(), read_at, "the counter was read");
                assert_eq!(witness.status(), Status::Calibrating);
                // Two reads in a row begin again, because a suspend may have corrupted the old
                // sample.
                witness.watch(60 * MICRO);
                assert_eq!(statistics(clock).calibrations, 2);
            }
        },
    );
}

/// Counts one read of the kernel's clock, or two for the wall clock, and no segment. Two reads
/// within 1 ms make one. The first read after a step of the wall clock follows it.
#[test]
fn a_read_once_in_a_while_asks_the_vdso_alone() {
    const HOUR: i64 = 3_600_000_000_000;
    let step = prop_oneof![-HOUR..-2_000, 2_000..HOUR];
    let cases = (1_100..2_000_000_u64, 1..990_u64, any::<[bool; 2]>(), step);
    check(
        200,
        quiet_machines(0),
        cases,
        |witness, (micros, soon, kinds, step)| {
            let Witness { world, clock, .. } = witness;
            witness.watch(2 * CALIBRATION);
            // After the end of the segment, and a lead of the clock at its end.
            world.pass(witness.left() + 100 * MICRO);
            let before = statistics(clock);
            let read = |is_wall: bool| {
                let reads = world.kernel_reads.get();
                if is_wall {
                    let before = world.wall();
                    let now = clock.slow_realtime().unwrap();
                    assert!(
                        (before - 20..=world.wall() + 20).contains(&now),
                        "{now} is not the kernel's"
                    );
                } else {
                    assert!(clock.monotonic(Source::ticks).is_none());
                    assert!(clock.slow_monotonic().is_some());
                }
                world.kernel_reads.get() - reads
            };
            assert_eq!(read(false), 1);
            world.pass(SEGMENT);
            for turn in 0..200 {
                let is_step = turn == 101;
                world.step(if is_step { step } else { 0 });
                let reads = read(turn % 2 == 1);
                assert!(reads == 1 + turn % 2 || is_step, "{reads} reads");
                world.pass(u128::from(micros) * MICRO);
            }
            let after = statistics(clock);
            assert_eq!(
                (after.segments, after.vdso_reads),
                (before.segments, before.vdso_reads + 201)
            );
            read(kinds[0]);
            world.pass(u128::from(soon) * MICRO);
            read(kinds[1]);
            assert_eq!(statistics(clock).segments, after.segments + 1);
            assert_eq!(witness.status(), Status::Used);
            assert!(
                clock.monotonic(Source::ticks).is_some()
                    && clock.monotonic(Source::ticks_ordered).is_some()
            );
            assert!(
                clock.realtime(Source::ticks).is_some()
                    && clock.realtime(Source::ticks_ordered).is_some()
            );
        },
    );
}

/// Denies the clock. Until the segment ends, its time is right. Then there is no time.
#[test]
fn a_denied_clock_returns_no_time_and_recovers() {
    let turns = vec((any::<bool>(), 0..60_u128), 1..10);
    let reached = cases::check(500, &(machines(), turns), |(machine, turns)| {
        let witness = Witness::new(machine);
        let mut denials = 0;
        for (is_denied, millis) in turns {
            witness.world.is_denied.set(is_denied);
            let end = SEGMENT.min(millis * MILLI);
            witness.watch(end);
            if is_denied && end == SEGMENT && witness.read().is_none() {
                assert_eq!(witness.read_wall(), None);
                assert!(matches!(
                    witness.status(),
                    Status::Calibrating | Status::Stale
                ));
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

/// Steps the clocks while nothing reads, or does not.
#[test]
fn two_reads_in_a_row_count_a_step_that_came_while_nothing_read() {
    let cases = (1..10_000_u128, any::<[bool; 3]>());
    check(
        200,
        quiet_machines(0),
        cases,
        |witness, (millis, [is_step, is_wall_step, is_back])| {
            let Witness { world, clock, .. } = witness;
            witness.watch(4 * CALIBRATION);
            let before = statistics(clock);
            assert_eq!((before.steps, before.wall_steps), (0, 0));
            world.pass(millis * MILLI + SEGMENT);
            // More than NTP's rate, and more than a segment follows.
            let nanos = millis as i64 * 1_000 + 5_000_000;
            let nanos = if is_back { -nanos } else { nanos };
            if is_step {
                world.step_all(nanos);
                world.step(-nanos);
            }
            if is_wall_step {
                world.step(if is_step { 3 * nanos } else { nanos });
            }
            witness.time();
            witness.time();
            let after = statistics(clock);
            assert_eq!(after.steps, u64::from(is_step));
            if !is_step {
                assert_eq!(after.wall_steps, u64::from(is_wall_step));
            }
        },
    );
}
