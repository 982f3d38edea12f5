//! The wall clock when somebody sets it.

use proptest::collection::vec;
use proptest::prelude::*;

use super::witness::{CALIBRATION, SEGMENT, Witness, check};
use super::world::{MICRO, MILLI, Machine, SECOND, machines, quiet_machines};
use crate::engine::source::Source;

/// Interrupts between the reads of two clocks do not look like a step.
#[test]
fn the_wall_clock_follows_steps_within_a_segment_and_ignores_interrupts() {
    let steps = vec((any::<i64>().prop_map(|nanos| nanos >> 4), 0..50_u128), 0..5);
    let machines = (machines(), steps).prop_map(|(machine, steps)| {
        let interrupts = if steps.is_empty() { machine.interrupts } else { 0 };
        (Machine { interrupts, ..machine }, steps)
    });
    crate::cases::check(600, &machines, |(machine, steps)| {
        let witness = Witness::new(machine);
        let watch_wall = |picos: u128| {
            for _ in 0..=picos / (50 * MICRO) {
                witness.read_wall();
                witness.world.pass(50 * MICRO);
            }
        };
        let last = if steps.is_empty() { SECOND } else { 0 };
        for (nanos, millis) in steps {
            watch_wall(millis * MILLI);
            witness.world.step(nanos);
            witness.watch(SEGMENT);
        }
        watch_wall(last);
        true
    });
}

/// Fails for a clock that keeps the edge of the interval: that one was 41 ns late on a real
/// machine.
#[test]
fn the_offset_is_the_middle_of_the_possible_ones_and_is_kept() {
    let machines =
        machines().prop_map(|machine| Machine { interrupts: machine.interrupts.min(3_000), ..machine });
    check(300, machines, 0..40_u128, |witness @ Witness { world, clock, .. }, millis| {
        witness.watch(2 * CALIBRATION + millis * MILLI);
        let offset = || world.foresee(0, || clock.offset().unwrap());
        let (first, expected) = (offset(), world.wall() - world.kernel() as i64);
        assert!(first.abs_diff(expected) <= 5, "off by {} ns", first - expected);
        world.pass(SEGMENT * (millis % 3));
        witness.watch(10 * SEGMENT);
        assert_eq!(offset(), first);
    });
}

#[test]
fn a_segment_does_not_begin_before_a_sparse_read_of_the_wall_clock() {
    // The second read comes soon, so it makes a segment. It is preempted in the meantime, and its
    // samples do not show that the kernel's rate changed.
    let machines = quiet_machines(20_000_000).prop_map(|machine| Machine { is_shared: true, ..machine });
    check(500, machines, 1..10_u32, |witness @ Witness { world, clock, .. }, read| {
        witness.watch(2 * CALIBRATION);
        world.pass(2 * SEGMENT);
        witness.read();
        world.set_slew(400_000);
        witness.intrusion.set(|witness| witness.intruder_saw.set(witness.clock.slow_realtime()));
        world.preemption.set((world.kernel_reads.get() + read, 2 * MILLI));
        clock.slow_monotonic();
        let time = witness.wall(clock.realtime(Source::ticks)).unwrap();
        let earlier = witness.intruder_saw.get().unwrap_or(0);
        assert!(time >= earlier, "back by {}", earlier - time);
    });
}

/// Preempts a reader where a segment that led the kernel's clock has ended. The lead is over
/// afterwards.
#[test]
fn a_preempted_read_of_the_wall_clock_does_not_go_back() {
    check(200, quiet_machines(0), (1..4_u32, 0..3_000_u128), |witness, (read, micros)| {
        let Witness { world, clock, .. } = witness;
        witness.watch(2 * CALIBRATION + 40 * micros * MICRO);
        world.set_slew(-100_000_000);
        world.pass(witness.left().saturating_sub(100 * MICRO));
        let earlier = witness.wall(clock.realtime(Source::ticks)).unwrap();
        world.pass(110 * MICRO);
        world.preemption.set((world.kernel_reads.get() + read, micros * MICRO));
        let time = witness.wall(clock.realtime(Source::ticks)).unwrap();
        assert!(time >= earlier, "back by {}", earlier - time);
    });
}

#[test]
fn a_sparse_read_follows_a_step_at_once_and_then_reads_each_clock_once() {
    let step = prop_oneof![-3_600_000_000_000..-2_000_i64, 2_000..3_600_000_000_000_i64];
    check(200, quiet_machines(0), (step, 40..1000_u128), |witness, (step, millis)| {
        let Witness { world, clock, .. } = witness;
        witness.watch(2 * CALIBRATION);
        let asks = || {
            world.pass(millis * MILLI);
            let (reads, before) = (world.kernel_reads.get(), world.wall());
            let now = witness.wall(clock.realtime(Source::ticks)).unwrap();
            assert!((before - 20..=world.wall() + 20).contains(&now), "{before} {now} {}", world.wall());
            world.kernel_reads.get() - reads
        };
        asks();
        world.step(step);
        asks();
        assert_eq!([asks(), asks(), asks()], [2; 3]);
    });
}

/// Preempts the reader that makes a segment. Others read after a step, and do not make one.
#[test]
fn a_step_forward_that_one_read_sees_is_seen_by_all_later_ones() {
    let machines = quiet_machines(20_000_000).prop_map(|machine| Machine { is_shared: true, ..machine });
    check(500, machines, 1..10_u32, |witness @ Witness { world, clock, .. }, read| {
        witness.watch(2 * CALIBRATION);
        world.pass(witness.left() + MILLI);
        witness.read();
        witness.intrusion.set(|witness| {
            witness.world.step(2_000 + witness.world.random(1_000_000) as i64);
            witness.intruder_saw.set(witness.wall(witness.clock.realtime(Source::ticks)));
        });
        world.preemption.set((world.kernel_reads.get() + read, 2 * MILLI));
        clock.slow_monotonic();
        let time = witness.wall(clock.realtime(Source::ticks)).unwrap();
        let earlier = witness.intruder_saw.get().unwrap_or(0);
        assert!(time >= earlier, "back by {}", earlier - time);
    });
}
