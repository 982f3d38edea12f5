//! The wall clock when somebody sets it.

use proptest::collection::vec;
use proptest::prelude::*;

use super::witness::{CALIBRATION, SEGMENT, Witness, check};
use super::world::{MICRO, MILLI, Machine, SECOND, machines, quiet_machines};
use crate::engine::source::Source;

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
            let (first, expected) = (offset(), world.wall() - world.kernel() as i64);
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
