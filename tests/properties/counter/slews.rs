//! adjtimex(2) slews the kernel's clock by up to 10 %, and readers come seldom.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;

use super::witness::{CALIBRATION, SEGMENT, Witness};
use super::world::{MICRO, MILLI, Machine, NANO, SECOND, machine};
use crate::cases::check;
use crate::source::source::Source;
use crate::source::status::{Refusal, Status};

/// Parts per billion, and for how many milliseconds.
type Slew = (i64, u64);

fn slews() -> impl Strategy<Value = Vec<Slew>> {
    const MOST: i64 = 100_000_000;
    let ppb = prop_oneof![-MOST..=MOST, Just(MOST), Just(-MOST), Just(1_000_000), Just(-83_333_000)];
    prop_oneof![
        ppb.clone().prop_map(|ppb| vec![(ppb, 200)]),
        (ppb.clone(), any::<bool>())
            .prop_map(|(ppb, is_both)| { [(ppb, 40), (if is_both { -ppb } else { 0 }, 40)].repeat(6) }),
        vec((ppb, 1..60_u64), 1..12),
    ]
}

/// Each time is within the bound of its moment, except that the kernel's rate may change by 20 %
/// meanwhile. No time comes twice over more than 10 us.
#[test]
fn under_any_slew_the_bound_holds_and_the_time_never_stands_still() {
    let gaps = prop_oneof![3 => 1_000..20_000_u64, 1 => 20_000..900_000_u64, 1 => 1_000_000..30_000_000_u64];
    check(150, &(machine(), slews(), gaps, 0..30_u64), |(machine, slews, gap, millis)| {
        let witness = Witness::new(Machine { interrupts: 0, is_shared: false, ..machine });
        let Witness { world, clock, .. } = &*witness;
        witness.watch(u128::from(millis) * MILLI);
        let (mut latest, mut since) = (0, 0);
        for (ppb, millis) in slews {
            world.set_slew(ppb);
            let end = world.kernel() + millis * 1_000_000;
            while world.kernel() < end {
                let start = world.kernel();
                let bound = clock.error_bound();
                let before = world.kernel();
                let nanos = clock.monotonic(Source::ticks).or_else(|| clock.slow_monotonic()).unwrap();
                let after = world.kernel();
                let bound = bound + (after - start) / 5;
                assert!(nanos >= latest, "back by {}", latest - nanos);
                assert!(nanos + bound >= before, "{} late, the bound is {bound}", before - nanos);
                assert!(nanos <= after + bound, "{} early, the bound is {bound}", nanos - after);
                since = if nanos == latest { since } else { after };
                assert!(before.saturating_sub(since) <= 10_000, "{} without progress", before - since);
                latest = nanos;
                world.pass(u128::from(gap / 2 + world.random(gap)) * NANO);
            }
        }
        world.set_slew(0);
        witness.watch(2 * CALIBRATION + 8 * SEGMENT);
        assert_eq!(witness.settled(), Status::Used);
        assert!(clock.error_bound() < 20_000, "{:?}", clock.state());
        true
    });
}

/// The stated rate is compared with the clock that nobody slews. Segments are short for some time
/// after a change of the rate.
#[test]
fn a_slewed_clock_is_no_wrong_frequency_and_its_changes_make_short_segments() {
    let slew = prop_oneof![30_000_000..100_000_000_i64, -100_000_000..-30_000_000_i64];
    check(20, &(machine(), slew, 0..12_u128, any::<bool>()), |(machine, slew, millis, is_changed)| {
        let stated_hertz = Some(machine.hertz);
        let witness = Witness::new(Machine { stated_hertz, interrupts: 0, is_shared: false, ..machine });
        let Witness { world, clock, .. } = &*witness;
        world.set_slew(slew);
        witness.watch(millis * MILLI);
        world.set_slew(if is_changed { -slew } else { slew });
        witness.is_accurate.set(false);
        witness.watch_until_used();
        let statistics = clock.statistics();
        assert_eq!((statistics.calibrations, statistics.segments, statistics.refusals), (1, 1, 0));
        let segments = |picos: u128| {
            let before = clock.statistics().segments;
            witness.tolerate(true, picos);
            clock.statistics().segments - before
        };
        segments(SEGMENT);
        world.set_slew(0);
        segments(SEGMENT);
        assert!((24..=51).contains(&segments(100 * MILLI)), "segments are not short");
        segments(500 * MILLI);
        assert!((6..=14).contains(&segments(100 * MILLI)), "segments are still short");
        let errors = clock.statistics();
        assert!(
            errors.largest_error > errors.last_error && errors.last_error < Duration::from_micros(10),
            "{errors:?}"
        );
        assert_eq!((witness.status(), world.detections.get()), (Status::Used, 1));
        world.pass(11 * SECOND);
        segments(4 * SEGMENT);
        assert_eq!((witness.status(), world.detections.get()), (Status::Used, 2));
        true
    });
}

/// The slew begins when the segment was made.
#[test]
fn the_error_bound_includes_a_slew_since_the_last_sample() {
    let slew = prop_oneof![20_000_000..100_000_000_i64, -100_000_000..-20_000_000_i64];
    check(200, &(machine(), slew, 2..7_u128), |(machine, slew, eighths)| {
        let witness = Witness::new(Machine { interrupts: 0, ..machine });
        let Witness { world, clock, .. } = &*witness;
        witness.watch(4 * CALIBRATION);
        let (segments, end) = (clock.statistics().segments, world.kernel() + (SEGMENT / NANO) as u64);
        while clock.statistics().segments == segments {
            assert!(world.kernel() < end, "{}", witness.status());
            world.pass(30 * MICRO);
            witness.read();
        }
        world.set_slew(slew);
        world.pass(witness.left() * eighths / 8);
        let bound = clock.error_bound();
        world.pass(witness.left().saturating_sub(MICRO));
        let before = world.kernel();
        let nanos = clock.monotonic(Source::ticks).or_else(|| clock.slow_monotonic()).unwrap();
        let allowed = before - bound..=world.kernel() + bound;
        assert!(allowed.contains(&nanos), "{nanos} is not in {allowed:?}, the bound was {bound}");
        true
    });
}

/// One read of the kernel's clock, and no segment. Two reads within 1 ms make one.
#[test]
fn a_read_once_in_a_while_asks_the_vdso_alone() {
    let kinds = any::<[bool; 2]>();
    check(200, &(machine(), 1_100..2_000_000_u64, 1..990_u64, kinds), |(machine, micros, soon, kinds)| {
        let witness = Witness::new(Machine { interrupts: 0, ..machine });
        let Witness { world, clock, .. } = &*witness;
        witness.watch(2 * CALIBRATION);
        // After the end of the segment, and a lead of the clock at its end.
        world.pass(witness.left() + 100 * MICRO);
        let before = clock.statistics();
        let read = |is_wall: bool| {
            let reads = world.kernel_reads.get();
            if is_wall {
                let before = world.wall();
                let now = clock.slow_realtime().unwrap();
                assert!((before..=world.read_at_wall.get()).contains(&now), "{now} is not the kernel's");
            } else {
                assert!(clock.monotonic(Source::ticks).is_none());
                assert!(clock.slow_monotonic().is_some());
            }
            world.kernel_reads.get() - reads
        };
        assert_eq!(read(false), 1);
        world.pass(SEGMENT);
        for turn in 0..200 {
            assert_eq!(read(turn % 2 == 1), 1);
            world.pass(u128::from(micros) * MICRO);
        }
        let after = clock.statistics();
        assert_eq!((after.segments, after.vdso_reads), (before.segments, before.vdso_reads + 201));
        read(kinds[0]);
        world.pass(u128::from(soon) * MICRO);
        read(kinds[1]);
        // A read of the monotonic clock does not look for one of the wall clock.
        if kinds == [true, false] {
            assert_eq!(clock.statistics().segments, after.segments);
            read(false);
        }
        assert_eq!(clock.statistics().segments, after.segments + 1);
        assert_eq!(witness.status(), Status::Used);
        let fast = [clock.monotonic(Source::ticks), clock.monotonic_ordered()].map(|time| time.is_some());
        let wall = [clock.realtime(Source::ticks), clock.realtime_ordered()].map(|time| time.is_some());
        assert_eq!((fast, wall), ([true; 2], [true; 2]));
        true
    });
}

/// A switch that costs nothing, and one that makes each read a system call.
#[test]
fn a_clock_that_must_not_ask_uses_a_counter_that_is_not_suspect() {
    check(100, &(machine(), any::<bool>(), any::<bool>()), |(machine, is_measured, is_slow)| {
        let hertz = machine.hertz.max(20_000_000); // the cost must be more than a tick
        let witness = Witness::new(Machine { hertz, stated_hertz: None, interrupts: 0, ..machine });
        witness.watch(if is_measured { 2 * CALIBRATION } else { 0 });
        let asked = witness.world.detections.get();
        witness.clock.forbid_system_calls();
        witness.world.pass(30 * SECOND);
        witness.watch(4 * CALIBRATION);
        let expected =
            if is_measured { Status::Used } else { Status::Refused(Refusal::SystemCallsForbidden) };
        assert_eq!(witness.settled(), expected);
        witness.world.syscall.set(if is_slow { MICRO } else { 0 });
        witness.watch(SEGMENT);
        let expected = if is_slow { Status::Refused(Refusal::SystemCallsForbidden) } else { expected };
        assert_eq!((witness.settled(), witness.world.detections.get()), (expected, asked));
        is_slow
    });
}

/// Its time is not always by a segment. Nobody sets it here.
#[test]
fn under_any_slew_the_wall_clock_never_goes_back() {
    let gaps = prop_oneof![3 => 300..20_000_u64, 1 => 20_000..900_000_u64, 1 => 1_000_000..30_000_000_u64];
    let slews = prop_oneof![slews(), vec((-250_000..=250_000_i64, 100..300_u64), 1..4)];
    check(150, &(machine(), slews, gaps, 0..30_u64), |(machine, slews, gap, millis)| {
        let witness = Witness::new(Machine { interrupts: machine.interrupts.min(300), ..machine });
        let Witness { world, clock, .. } = &*witness;
        witness.is_accurate.set(false);
        witness.watch(u128::from(millis) * MILLI);
        let mut latest = i64::MIN;
        for (ppb, millis) in slews {
            world.set_slew(ppb);
            let end = world.kernel() + millis * 1_000_000;
            while world.kernel() < end {
                let now = witness.wall(clock.realtime(Source::ticks)).unwrap();
                assert!(now >= latest, "back by {} ns", latest - now);
                latest = now;
                world.pass(u128::from(gap / 2 + world.random(gap)) * NANO);
            }
        }
        true
    });
}
