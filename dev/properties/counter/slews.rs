//! adjtimex(2) slews the kernel's clock by up to 10 %, and readers come seldom.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;

use super::witness::{CALIBRATION, SEGMENT, Witness, bound, check, statistics};
use super::world::{MILLI, Machine, NANO, SECOND, World, machines, quiet_machines};
use crate::engine::source::Source;
use crate::engine::status::Status;

/// Parts per billion, and for how many milliseconds.
type Slew = (i64, u64);

fn slews() -> impl Strategy<Value = Vec<Slew>> {
    const MOST: i64 = 100_000_000;
    let ppb = prop_oneof![
        -MOST..=MOST,
        Just(MOST),
        Just(-MOST),
        Just(1_000_000),
        Just(-83_333_000)
    ];
    prop_oneof![
        ppb.clone().prop_map(|ppb| vec![(ppb, 200)]),
        (ppb.clone(), any::<bool>()).prop_map(|(ppb, is_both)| {
            [(ppb, 40), (if is_both { -ppb } else { 0 }, 40)].repeat(6)
        }),
        vec((ppb, 1..60_u64), 1..12),
    ]
}

/// Chooses the nanoseconds between reads: mostly from `often`, else up to 30 ms.
fn gaps(often: std::ops::Range<u64>) -> impl Strategy<Value = u64> {
    prop_oneof![3 => often, 1 => 20_000..900_000_u64, 1 => 1_000_000..30_000_000_u64]
}

/// Calls `read` during the slews, about once in `gap` nanoseconds.
fn slew(world: &World, slews: Vec<Slew>, gap: u64, mut read: impl FnMut()) {
    for (ppb, millis) in slews {
        world.set_slew(ppb);
        let end = world.kernel() + millis * 1_000_000;
        while world.kernel() < end {
            read();
            world.pass(u128::from(gap / 2 + world.random(gap)) * NANO);
        }
    }
}

/// Checks each time against the bound of its moment, and 20 % of the read itself, because the
/// kernel's rate may change by that. No time repeats for more than 10 us.
#[test]
fn under_any_slew_the_bound_holds_and_the_time_never_stands_still() {
    let cases = (slews(), gaps(1_000..20_000), 0..30_u64);
    check(
        150,
        quiet_machines(0),
        cases,
        |witness @ Witness { world, clock, .. }, (slews, gap, millis)| {
            witness.watch(u128::from(millis) * MILLI);
            let mut latest = 0;
            let mut since = 0;
            slew(world, slews, gap, || {
                let start = world.kernel();
                let bound = bound(clock);
                let before = world.kernel();
                let nanos = witness.time();
                let after = world.kernel();
                let bound = bound + (after - start) / 5;
                assert!(nanos >= latest, "back by {}", latest - nanos);
                assert!(
                    nanos + bound >= before,
                    "{} late, the bound is {bound}",
                    before - nanos
                );
                assert!(
                    nanos <= after + bound,
                    "{} early, the bound is {bound}",
                    nanos - after
                );
                since = if nanos == latest { since } else { after };
                assert!(
                    before.saturating_sub(since) <= 10_000,
                    "{} without progress",
                    before - since
                );
                latest = nanos;
            });
            world.set_slew(0);
            witness.watch(2 * CALIBRATION + 8 * SEGMENT);
            assert_eq!(witness.settled(), Status::Used);
            assert!(bound(clock) < 20_000, "{:?}", clock.state());
        },
    );
}

/// Reads the wall clock, which is not set, from segments and from the vDSO.
#[test]
fn under_any_slew_the_wall_clock_never_goes_back() {
    let slews = prop_oneof![slews(), vec((-250_000..=250_000_i64, 100..300_u64), 1..4)];
    let machines = machines().prop_map(|machine| Machine {
        interrupts: machine.interrupts.min(300),
        ..machine
    });
    check(
        150,
        machines,
        (slews, gaps(300..20_000), 0..30_u64),
        |witness, (slews, gap, millis)| {
            let Witness { world, clock, .. } = witness;
            witness.is_accurate.set(false);
            witness.watch(u128::from(millis) * MILLI);
            let mut latest = i64::MIN;
            slew(world, slews, gap, || {
                let now = witness.wall(clock.realtime(Source::ticks)).unwrap();
                assert!(now >= latest, "back by {} ns", latest - now);
                latest = now;
            });
        },
    );
}

/// Compares the stated rate with the clock that is never slewed. After a change of the rate,
/// segments are short for some time.
#[test]
fn a_slewed_clock_is_no_wrong_frequency_and_its_changes_make_short_segments() {
    let slew = prop_oneof![30_000_000..100_000_000_i64, -100_000_000..-30_000_000_i64];
    let machines = quiet_machines(0).prop_map(|machine| Machine {
        stated_hertz: Some(machine.hertz),
        ..machine
    });
    check(
        20,
        machines,
        (slew, 0..12_u128, any::<bool>()),
        |witness, (slew, millis, is_changed)| {
            let Witness { world, clock, .. } = witness;
            world.set_slew(slew);
            witness.watch(millis * MILLI);
            world.set_slew(if is_changed { -slew } else { slew });
            witness.is_accurate.set(false);
            witness.watch_until_used();
            let counted = statistics(clock);
            assert_eq!(
                (
                    counted.calibrations,
                    counted.segments,
                    counted.times_unavailable
                ),
                (1, 1, 0)
            );
            let segments = |picos: u128| {
                let before = statistics(clock).segments;
                witness.tolerate(true, picos);
                statistics(clock).segments - before
            };
            segments(SEGMENT);
            world.set_slew(0);
            segments(SEGMENT);
            assert!(
                (24..=51).contains(&segments(100 * MILLI)),
                "segments are not short"
            );
            segments(500 * MILLI);
            assert!(
                (6..=14).contains(&segments(100 * MILLI)),
                "segments are still short"
            );
            let errors = statistics(clock);
            assert!(errors.largest_error > errors.last_error, "{errors:?}");
            assert!(errors.last_error < Duration::from_micros(10), "{errors:?}");
            assert_eq!(
                (witness.status(), world.detections.get()),
                (Status::Used, 1)
            );
            world.pass(11 * SECOND);
            segments(4 * SEGMENT);
            assert_eq!(
                (witness.status(), world.detections.get()),
                (Status::Used, 2)
            );
        },
    );
}
