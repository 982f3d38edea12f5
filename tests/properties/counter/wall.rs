//! The wall clock when somebody sets it, and the limits of the true time.

use proptest::collection::vec;
use proptest::prelude::*;

use super::witness::{CALIBRATION, SEGMENT, Witness};
use super::world::{MICRO, MILLI, Machine, SECOND, machine};
use crate::cases::check;
use crate::source::bounded::{Bounds, Limits};

fn steps() -> impl Strategy<Value = Vec<(i64, i64, u128)>> {
    let step = prop_oneof![any::<i64>().prop_map(|nanos| nanos >> 8), -10_000_000..10_000_000_i64];
    vec((step, -250_000..=250_000_i64, 0..1500_u128), 1..8)
}

#[test]
fn a_step_is_within_the_wall_bound_at_once_and_seen_after_resync() {
    check(150, &(machine(), steps()), |(machine, steps)| {
        let witness = Witness::new(Machine { interrupts: 0, ..machine });
        for (nanos, _, millis) in steps {
            witness.watch(millis % 40 * MILLI + u128::from(witness.world.random(1_000_000_000)));
            // Also while the next segment is made and the old one is in force.
            if nanos % 2 == 0 {
                witness.world.pass(witness.left().saturating_sub(10 * MICRO));
                witness.read();
            }
            witness.world.step(nanos);
            let bound = witness.clock.wall_bound(witness.clock.state().error_bound).unwrap() as i64;
            let before = witness.world.wall();
            let fast = witness.clock.realtime_ordered();
            let now = fast.or_else(|| witness.clock.slow_realtime()).unwrap();
            assert!((before - bound..=witness.world.wall() + bound).contains(&now), "{now}, {bound}");
            let monotonic = witness.read();
            assert!(witness.clock.resync());
            assert!(witness.clock.state().error_bound < 20_000, "{:?}", witness.clock.state());
            witness.read_wall();
            assert!(witness.read() >= monotonic);
        }
        true
    });
}

/// Also if interrupts come between the reads.
#[test]
fn resync_finds_the_middle_of_the_possible_offsets() {
    check(150, &machine(), |machine| {
        let witness = Witness::new(Machine { interrupts: machine.interrupts.min(3_000), ..machine });
        for _ in 0..20 {
            witness.watch(2 * CALIBRATION);
            assert!(witness.clock.resync());
            let expected = witness.world.wall() - witness.world.kernel() as i64;
            let offset = witness.world.foresee(0, || witness.clock.offset().unwrap());
            assert!(offset.abs_diff(expected) <= 12, "off by {} ns", offset - expected);
        }
        true
    });
}

#[test]
fn the_true_time_is_within_the_limits_also_if_the_wall_clock_is_set_and_slewed() {
    let cases = (machine(), steps());
    check(60, &cases, |(machine, steps)| {
        let (witness, bounds) = (Witness::new(machine), Bounds::new());
        let world = &witness.world;
        // Fails unless the truth is within the limits.
        let limits = || {
            let before = world.truth();
            let Limits { times: [earliest, latest], is_synchronized } =
                bounds.limits(&witness.clock).unwrap();
            let after = world.truth();
            assert!(earliest <= after && before <= latest, "{earliest} {before} {after} {latest}");
            (latest.abs_diff(earliest), is_synchronized)
        };
        for (turn, (nanos, ppb, millis)) in steps.into_iter().enumerate() {
            for _ in 0..10 {
                limits();
                witness.tolerate(true, millis * MILLI / 10);
            }
            let is_synchronized = turn % 2 == 0;
            world.is_unsynchronized.set(!is_synchronized);
            // Even if the clock is set right, or wrong, just after the kernel was asked.
            let step = if turn % 3 == 0 { world.truth() - world.wall() } else { nanos };
            world.step(step);
            world.set_slew(ppb);
            limits();
            witness.tolerate(true, SEGMENT + 2 * CALIBRATION);
            let (width, is_said_synchronized) = limits();
            if machine.interrupts == 0 && step.abs() > 2_000 {
                let error = world.wall().abs_diff(world.truth());
                assert!(width <= 2 * error + 1_200_000, "{width} ns of limits for an error of {error} ns");
                assert_eq!(is_said_synchronized, is_synchronized);
            }
        }
        true
    });
}

#[test]
fn the_kernel_is_asked_for_its_error_once_a_second_and_after_a_step() {
    let step = prop_oneof![2_000..1_000_000_000_i64, -1_000_000_000..-2_000_i64];
    check(50, &(machine(), step, any::<bool>()), |(machine, step, is_synchronized)| {
        let witness =
            Witness::new(Machine { hertz: machine.hertz.max(20_000_000), interrupts: 0, ..machine });
        let (world, bounds) = (&witness.world, Bounds::new());
        world.is_unsynchronized.set(!is_synchronized);
        let asked = |picos: u128| {
            world.pass(picos);
            witness.watch(SEGMENT);
            assert_eq!(bounds.limits(&witness.clock).unwrap().is_synchronized, is_synchronized);
            world.asked.get()
        };
        let wait = SECOND - 2 * SEGMENT;
        assert_eq!([asked(2 * CALIBRATION), asked(wait), asked(2 * SEGMENT), asked(wait)], [1, 1, 2, 2]);
        world.step(step);
        assert_eq!([asked(0), asked(wait)], [3, 3]);
        true
    });
}

#[test]
fn a_denied_or_forbidden_discipline_gives_no_limits() {
    check(20, &machine(), |machine| {
        let (witness, bounds) = (Witness::new(Machine { interrupts: 0, ..machine }), Bounds::new());
        witness.world.is_denied.set(true);
        assert_eq!(bounds.limits(&witness.clock), None);
        witness.world.is_denied.set(false);
        assert!(bounds.limits(&witness.clock).is_some());
        witness.clock.forbid_checks();
        assert!(bounds.limits(&witness.clock).is_some(), "the last answer is kept for a second");
        witness.world.pass(SECOND);
        assert_eq!(bounds.limits(&witness.clock), None);
        true
    });
}
