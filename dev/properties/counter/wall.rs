//! The wall clock when it is set.

use proptest::collection::vec;
use proptest::prelude::*;

use super::witness::{CALIBRATION, SEGMENT, Witness, check};
use super::world::{MICRO, MILLI, Machine, NANO, SECOND, machines, quiet_machines};
use crate::engine::source::Source;
use crate::engine::status::{Status, Unavailable};

/// Interrupts between the reads of two clocks do not look like a step.
#[test]
fn the_wall_clock_follows_steps_within_a_segment_and_ignores_interrupts() {
    let steps = vec(
        (any::<i64>().prop_map(|nanos| nanos >> 4), 0..50_u128),
        0..5,
    );
    let machines = (machines(), steps).prop_map(|(machine, steps)| {
        let interrupts = if steps.is_empty() {
            machine.interrupts
        } else {
            0
        };
        (
            Machine {
                interrupts,
                ..machine
            },
            steps,
        )
    });
    crate::cases::check(600, &machines, |(machine, steps)| {
        let witness = Witness::new(machine);
        let last = if steps.is_empty() { SECOND } else { 0 };
        for (nanos, millis) in steps {
            witness.watch_wall(millis * MILLI);
            witness.world.step(nanos);
            witness.watch(SEGMENT);
        }
        witness.watch_wall(last);
        true
    });
}

/// Fails for a clock that keeps the edge of the interval: that one was 41 ns late on a real
/// machine.
#[test]
fn the_offset_is_the_middle_of_the_possible_ones_and_is_kept() {
    let machines = machines().prop_map(|machine| Machine {
        interrupts: machine.interrupts.min(3_000),
        ..machine
    });
    check(
        300,
        machines,
        0..40_u128,
        |witness @ Witness { world, clock, .. }, millis| {
            witness.watch(2 * CALIBRATION + millis * MILLI);
            let offset = || world.foresee(0, || clock.offset().unwrap());
            let first = offset();
            let expected = world.wall() - world.kernel() as i64;
            assert!(
                first.abs_diff(expected) <= 5,
                "off by {} ns",
                first - expected
            );
            world.pass(SEGMENT * (millis % 3));
            witness.watch(10 * SEGMENT);
            assert_eq!(offset(), first);
        },
    );
}

/// Preempts a reader where a segment that led the kernel's clock has ended. The lead is over
/// afterwards.
#[test]
fn a_preempted_read_of_the_wall_clock_does_not_go_back() {
    check(
        200,
        quiet_machines(0),
        (1..4_u32, 0..3_000_u128),
        |witness, (read, micros)| {
            let Witness { world, clock, .. } = witness;
            witness.watch(2 * CALIBRATION + 40 * micros * MICRO);
            world.set_slew(-100_000_000);
            world.pass(witness.left().saturating_sub(100 * MICRO));
            let earlier = witness.wall(clock.realtime(Source::ticks)).unwrap();
            world.pass(110 * MICRO);
            world
                .preemption
                .set((world.kernel_reads.get() + read, micros * MICRO));
            let time = witness.wall(clock.realtime(Source::ticks)).unwrap();
            assert!(time >= earlier, "back by {}", earlier - time);
        },
    );
}

/// Preempts the reader that makes a segment, the second of two sparse ones. Meanwhile others read,
/// after a step or at a rate whose change the samples do not show.
#[test]
fn a_segment_does_not_begin_before_a_wall_time_that_was_read_while_it_was_made() {
    let machines = quiet_machines(20_000_000).prop_map(|machine| Machine {
        is_shared: true,
        ..machine
    });
    let cases = (1..10_u32, any::<bool>());
    check(
        1_000,
        machines,
        cases,
        |witness @ Witness { world, clock, .. }, (read, is_stepped)| {
            witness.watch(2 * CALIBRATION);
            world.pass(witness.left() + MILLI);
            witness.read();
            if is_stepped {
                witness.intrusion.set(|witness| {
                    witness
                        .world
                        .step(2_000 + witness.world.random(1_000_000) as i64);
                    witness
                        .intruder_saw
                        .set(witness.wall(witness.clock.realtime(Source::ticks)));
                });
            } else {
                world.set_slew(400_000);
                witness
                    .intrusion
                    .set(|witness| witness.intruder_saw.set(witness.clock.slow_realtime()));
            }
            world
                .preemption
                .set((world.kernel_reads.get() + read, 2 * MILLI));
            clock.slow_monotonic();
            let time = witness.wall(clock.realtime(Source::ticks)).unwrap();
            let earlier = witness.intruder_saw.get().unwrap_or(0);
            assert!(time >= earlier, "back by {}", earlier - time);
        },
    );
}

/// Steps the wall clock forward by less than an error of the offset while the kernel answers, which
/// is asked again every 10 s, and lets the counter come into use. Another thread can just have read
/// the kernel's time.
#[test]
fn after_the_kernels_own_times_the_wall_clock_does_not_go_back() {
    let cases = (0..1_000_i64, 0..9_000_u128, any::<bool>());
    check(
        300,
        quiet_machines(1_000_000_000),
        cases,
        |witness, (step, millis, was_used)| {
            let Witness { world, clock, .. } = witness;
            if was_used {
                witness.watch(2 * CALIBRATION);
            }
            world.unavailable.set(Some(Unavailable::ClockSource));
            world.pass(11 * SECOND);
            witness.watch(2 * SEGMENT);
            let read = || {
                let is_unavailable = matches!(witness.status(), Status::Unavailable(_));
                // The errors of a segment, and of an offset whose turns are not measured yet.
                let allowed = if is_unavailable { 0 } else { 60 };
                let before = world.wall() - allowed;
                let time = witness.wall(clock.realtime(Source::ticks)).unwrap();
                assert!(time >= before, "back by {}", before - time);
            };
            read();
            world.pass(millis * MILLI);
            read();
            world.step(step);
            for unavailable in [Some(Unavailable::ClockSource), None] {
                read();
                world.unavailable.set(unavailable);
                world.pass(10 * SECOND);
                for _ in 0..1_500 {
                    read();
                    world.pass(u128::from(world.random(40)) * MICRO);
                }
            }
            assert_eq!(witness.settled(), Status::Used);
        },
    );
}

/// Makes each read of the kernel's clocks slow, as an emulator does, or a board whose firmware
/// reads the counter. With limits in nanoseconds, the wall clock was late by a read.
#[test]
fn where_reads_are_slow_the_wall_clock_is_right_to_a_tenth_of_a_read() {
    let cases = (100..5_000_u128, 0..40_u128, any::<bool>());
    check(
        100,
        quiet_machines(20_000_000),
        cases,
        |witness, (nanos, millis, is_forward)| {
            let Witness { world, clock, .. } = witness;
            world.syscall.set(nanos * NANO);
            world.entry.set(4 * nanos * NANO);
            let read = nanos as i64 + 30;
            let error = || {
                let offset = world.foresee(0, || clock.offset().unwrap());
                offset - (world.wall() - world.kernel() as i64)
            };
            witness.watch(2 * CALIBRATION + millis * MILLI);
            assert_eq!(witness.settled(), Status::Used);
            let allowed = read / 10 + 60;
            assert!(error().abs() <= allowed, "off by {} ns", error());
            // Four reads are more than the error of a measurement.
            let steps = clock.state().statistics.wall_steps;
            world.step(if is_forward { 8 * read } else { -8 * read });
            witness.watch(2 * SEGMENT);
            assert!(
                error().abs() <= allowed,
                "off by {} ns after a step",
                error()
            );
            assert_eq!(clock.state().statistics.wall_steps, steps + 1);
        },
    );
}
