//! The process enters another time namespace, whose `CLOCK_MONOTONIC` is ahead or behind.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::witness::{CALIBRATION, SEGMENT, Witness, bound, check};
use super::world::{MICRO, MILLI, machines, quiet_machines};
use crate::engine::source::Source;
use crate::engine::status::{Status, Unavailable};

/// Checks from the end of the segment on. A corrupted calibration can make one more wrong segment.
#[test]
fn the_clock_of_another_time_namespace_is_followed_within_the_error_bound() {
    let lead = (
        -4_000..4_000_i64,
        select(&[5_000, 50_000, 1_500_000, 1_000_000_000][..]),
    );
    check(
        2_000,
        machines(),
        (lead, 0..30_u128, any::<bool>()),
        |witness, (lead, millis, is_unavailable)| {
            let reason = is_unavailable.then_some(Unavailable::ClockSource);
            witness.world.unavailable.set(reason);
            let is_measured = millis > 15;
            witness.watch(if is_measured { 8 * CALIBRATION } else { 0 } + millis * MILLI);
            witness.world.enter_namespace(lead.0 * lead.1);
            witness.tolerate(
                false,
                if is_measured {
                    SEGMENT
                } else {
                    2 * SEGMENT + 4 * CALIBRATION
                },
            );
            witness.watch(8 * SEGMENT);
            assert_eq!(
                witness.settled(),
                reason.map_or(Status::Used, Status::Unavailable)
            );
        },
    );
}

#[test]
fn the_time_stands_still_for_64_ms_at_most_in_another_time_namespace() {
    // A smaller step looks like a slew.
    let millis = prop_oneof![5..40_i64, 5..200_i64];
    let cases = (millis, prop_oneof![Just(0), 0..40_u64], any::<bool>());
    check(
        500,
        quiet_machines(0),
        cases,
        |witness, (millis, pause, is_unavailable)| {
            let Witness { world, clock, .. } = witness;
            witness.watch(8 * CALIBRATION);
            let before = witness.read().unwrap();
            // The last segment may end 16 ms later.
            let is_waited_for = millis < 64 - 17;
            world
                .unavailable
                .set(is_unavailable.then_some(Unavailable::ClockSource));
            world.enter_namespace(-millis * 1_000_000);
            world.pass(u128::from(pause) * MILLI);
            let mut turns = 0..2 * SEGMENT / (MILLI / 10);
            while witness.status() == Status::Used && turns.next().is_some() {
                witness.tolerate(is_waited_for, MILLI / 10);
            }
            assert_ne!(witness.status(), Status::Used);
            witness.tolerate(is_waited_for, MILLI / 10); // the rest of the old segment
            assert!(bound(clock) <= 64_000_000);
            let is_earlier = || witness.read().unwrap() < before + pause * 1_000_000;
            assert!(millis <= 64 || is_earlier(), "{millis} ms are waited for");
            // The error never grows, so a step that the clock followed immediately is not waited
            // for later.
            let mut most = bound(clock).max(10_000_000);
            for _ in 0..8 * 17 {
                witness.watch(MILLI);
                let bound = bound(clock);
                assert!(bound <= most, "{bound} ns after {most} ns");
                most = bound.max(10_000_000);
            }
        },
    );
}

/// Enters a namespace up to 64 ms ahead or behind. If it is behind, a segment leads the kernel's
/// clock by as much as the monotonic time stands still.
#[test]
fn the_wall_clock_does_not_go_back_in_another_time_namespace() {
    let cases = (-64_000..64_000_i64, vec(0..40_000_u128, 1..5));
    check(
        300,
        quiet_machines(0),
        cases,
        |witness @ Witness { world, clock, .. }, (lead, pauses)| {
            witness.watch(2 * CALIBRATION);
            world.pass(2 * SEGMENT);
            witness.read();
            world.enter_namespace(lead * 1_000);
            witness.tolerate(false, MILLI); // makes a segment
            let mut latest = i64::MIN;
            for pause in pauses {
                let time = witness.wall(clock.realtime(Source::ticks)).unwrap();
                assert!(time >= latest, "back by {}", latest - time);
                latest = time;
                world.pass(pause * MICRO);
            }
        },
    );
}
