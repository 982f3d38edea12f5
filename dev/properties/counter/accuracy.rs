//! Whatever happens to a machine, the time never goes back and is within the error bound.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::witness::{CALIBRATION, SEGMENT, Witness, bound, check, statistics};
use super::world::{MICRO, MILLI, NANO, SECOND, machines, quiet_machines};
use crate::cases;
use crate::engine::source::Source;
use crate::engine::status::Status;

#[derive(Clone, Copy, Debug)]
enum Event {
    /// So many reads, with up to so many nanoseconds in between.
    Reads(u16, u64),
    /// No thread reads for so many microseconds.
    Idle(u64),
    /// No thread reads for so many seconds, and the system is suspended for so many parts per
    /// billion of them. That looks like a change of the rate, and counts as one if NTP could have
    /// made it.
    Nap(u128, u128),
    /// NTP makes the kernel's clock faster or slower, by up to 250 ppm.
    Discipline(i64),
    /// The system is suspended for so many milliseconds. The flag says whether the counter jumps.
    Suspend(u64, bool),
    /// The virtual machine gets so many hundredths of the first rate.
    Migrate(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let idle = prop_oneof![1..40_000_u64, 1..10_000_000_u64, 1..100_000_000_000_u64];
    let suspend = (prop_oneof![1..100_u64, 1..100_000_000_u64], any::<bool>());
    prop_oneof![
        8 => (1..400_u16, 1..200_000_u64).prop_map(|(reads, gap)| Event::Reads(reads, gap)),
        4 => idle.prop_map(Event::Idle),
        1 => (1..4_000_u128, prop_oneof![0..500_000_u128, 500_000..2_000_000_u128])
            .prop_map(|(seconds, ppb)| Event::Nap(seconds, ppb)),
        4 => (-250_000..=250_000_i64).prop_map(Event::Discipline),
        1 => suspend.prop_map(|(millis, jumps)| Event::Suspend(millis, jumps)),
        1 => (50..=200_u64).prop_map(Event::Migrate),
    ]
}

/// The end of a segment on a counter that is four times as slow; and two calibrations, one of them
/// corrupted.
const OLD_SEGMENT: u128 = 4 * SEGMENT;
const SETTLED: u128 = OLD_SEGMENT + SEGMENT + 2 * CALIBRATION;

fn live(witness: &Witness, event: Event) {
    let world = &witness.world;
    // The clock notices it when the segment ends. It can corrupt a calibration, and so one segment.
    let disrupt = |disruption: &dyn Fn()| {
        let is_measured = matches!(witness.status(), Status::Used | Status::Stale);
        disruption();
        witness.tolerate(true, if is_measured { OLD_SEGMENT } else { SETTLED });
        witness.watch(SETTLED);
    };
    match event {
        Event::Reads(reads, gap) => {
            for _ in 0..reads {
                witness.read();
                world.pass(u128::from(world.random(gap)) * NANO);
            }
        }
        Event::Idle(micros) => world.pass(u128::from(micros) * MICRO),
        Event::Nap(seconds, ppb) => {
            witness.watch(100 * MILLI);
            world.pass(seconds * SECOND);
            world.suspend(seconds * SECOND * ppb / 1_000_000_000, false);
        }
        Event::Discipline(ppb) => {
            witness.watch(SEGMENT); // the bound allows for one change in a segment
            world.set_slew(ppb);
        }
        Event::Suspend(millis, jumps) => {
            disrupt(&|| world.suspend(u128::from(millis) * MILLI, jumps));
        }
        Event::Migrate(part) => {
            let hertz = witness.machine.hertz / 100 * part;
            disrupt(&|| world.migrate(hertz.clamp(1_000_000, 64_000_000_000)));
        }
    }
}

#[test]
fn the_time_never_goes_back_and_is_within_the_error_bound() {
    check(3_000, machines(), vec(event(), 1..12), |witness, events| {
        for event in events {
            live(witness, event);
        }
        witness.watch(SETTLED + MILLI);
        assert_eq!(witness.settled(), Status::Used, "in the end");
    });
}

/// Changes the kernel's rate by up to 500 ppm, from -250 to 250 or back, just after a segment was
/// made, or just before it ends, with or without a slew of up to 10 % before.
#[test]
fn the_error_bound_holds_up_to_the_end_of_a_segment() {
    let change = prop_oneof![Just(-250_000), Just(250_000), -250_000..=250_000_i64];
    let rounds = vec(
        (change, [0..260_000_u64, 0..4_000, 0..4_000], 1..400_u64),
        1..20,
    );
    let slew = prop_oneof![Just(0), -100_000_000..=100_000_000_i64];
    check(
        1_000,
        machines(),
        (slew, rounds),
        |witness @ Witness { world, .. }, (slew, rounds)| {
            witness.watch(2 * CALIBRATION);
            world.set_slew(slew);
            witness.tolerate(true, 3 * SEGMENT);
            for (ppb, before_end, gap) in rounds {
                witness.watch(2 * SEGMENT);
                for (nanos, is_change) in before_end.into_iter().zip([true, false, false]) {
                    world.pass(witness.left().saturating_sub(u128::from(nanos) * NANO));
                    witness.read();
                    if is_change {
                        // The bound allows for 500 ppm of the kernel's time, which a slew can make
                        // shorter.
                        let shorter = slew.min(0);
                        world.set_slew(slew + ppb * (1_000_000_000 + shorter) / 1_000_000_000);
                    }
                    for _ in 0..100 {
                        witness.read();
                        world.pass(u128::from(gap) * NANO);
                    }
                }
            }
        },
    );
}

/// Changes the kernel's rate right after the call, at any time in a segment. The bound must hold
/// until that segment ends.
#[test]
fn the_error_bound_allows_for_one_change_of_the_rate_by_500_ppm() {
    let change = prop_oneof![Just(-500_000), Just(500_000), -500_000..=500_000_i64];
    check(
        300,
        quiet_machines(0),
        (change, 0..16_000_u128),
        |witness @ Witness { world, clock, .. }, (ppb, micros)| {
            witness.watch(4 * CALIBRATION + micros * MICRO);
            let end = witness.segment_in_force().segment.end();
            let bound = bound(clock);
            world.set_slew(ppb);
            while (world.ticks_ordered().wrapping_sub(end) as i64) < 0 {
                let before = world.kernel();
                let nanos = witness.time();
                let after = world.kernel();
                let early = nanos.saturating_sub(after);
                let error = before.saturating_sub(nanos).max(early);
                assert!(error <= bound, "{error} ns, the bound was {bound}");
                world.pass(50 * MICRO);
            }
        },
    );
}

/// Begins slews before the call, at it, and after the segment before: up to 60 ms. Only a slew that
/// began in the segment of the call or in the one before may make the bound false.
#[test]
fn the_error_bound_holds_unless_a_slew_began_in_the_segment_of_the_call_or_the_one_before() {
    const CHRONY: i64 = 83_333_000;
    let slew = prop_oneof![
        20_000_000..100_000_000_i64,
        -100_000_000..-20_000_000_i64,
        select(&[1_000_000, CHRONY, -CHRONY, 100_000_000, -100_000_000][..]),
    ];
    let times = (0..40_000_u128, 0..60_000_u128, any::<bool>());
    let cases = (quiet_machines(0), slew, times);
    let promised = cases::check(600, &cases, |(machine, slew, (micros, passed, is_late))| {
        let witness = Witness::new(machine);
        let Witness { world, clock, .. } = &*witness;
        witness.watch(4 * CALIBRATION + micros * MICRO);
        if is_late {
            // After the sample for the next segment, and before that begins.
            world.pass(witness.left().saturating_sub(20 * MICRO));
            witness.read();
        }
        let begun = witness.segment_in_force();
        world.set_slew(slew);
        witness.tolerate(true, passed * MICRO);
        let called = witness.segment_in_force();
        let end = called.segment.end();
        let is_promised = called.number >= begun.number + 2;
        let bound = bound(clock);
        while (world.ticks_ordered().wrapping_sub(end) as i64) < 0 {
            let before = world.kernel();
            let nanos = witness.time();
            let after = world.kernel();
            let early = nanos.saturating_sub(after);
            let error = before.saturating_sub(nanos).max(early);
            assert!(error <= 1_650_000, "{error} ns");
            assert!(
                error <= bound || !is_promised,
                "{error} ns, the bound was {bound}"
            );
            world.pass(50 * MICRO);
        }
        is_promised
    });
    assert!(promised > 0.25, "{promised} of the calls have a promise");
}

/// Preempts the reader between two reads, whose rate is then not the kernel's. Allows 10 ppm of the
/// time, over which the segment is extrapolated.
#[test]
fn a_preemption_within_the_call_does_not_widen_the_bound() {
    // A product of more than 4.29 s and the rate does not fit in 64 bits.
    check(
        200,
        quiet_machines(20_000_000),
        (prop_oneof![1..1_000_u128, 1_000..15_000_u128], 3..12_u128),
        |witness, (millis, at)| {
            let Witness { world, clock, .. } = witness;
            witness.watch(3 * CALIBRATION + at * MILLI);
            witness.read();
            let quiet = world.foresee(0, || bound(clock));
            world
                .preemption
                .set((world.kernel_reads.get() + 1, millis * MILLI));
            let bound = bound(clock);
            assert!(
                bound <= 2 * quiet + 20_000 + 10 * millis as u64,
                "{bound} ns after {quiet}, preempted for {millis} ms"
            );
        },
    );
}

/// Tries rates up to 500 ppm from the counter's. The 30 ns are for counters of at least 100 MHz.
#[test]
fn a_constant_rate_is_measured_to_10_ppm_and_followed_to_30_ns() {
    check(
        500,
        machines(),
        -500_000..=500_000_i64,
        |witness @ Witness {
             world,
             clock,
             machine,
             ..
         },
         ppb| {
            let is_fine = machine.hertz >= 100_000_000;
            world.set_slew(ppb);
            witness.watch(SECOND / 4);
            for _ in 0..10_000 {
                witness.watch(30 * MICRO);
                let time = clock.monotonic(Source::ticks_ordered);
                let error = time.map_or(0, |time| time.abs_diff(world.read_at.get()));
                assert!(error <= 30 || !is_fine, "off by {error} ns");
                assert!(
                    machine.interrupts > 0 || witness.status() == Status::Used,
                    "a segment ended"
                );
            }
            assert_eq!(witness.settled(), Status::Used);
            let second = 1_000_000_000_u128.saturating_add_signed(ppb.into());
            let expected = (u128::from(machine.hertz) * 1_000_000_000 / second) as u64;
            witness.assert_frequency(expected, expected / 100_000 + 200);
            if machine.interrupts == 0 {
                assert_eq!(world.detections.get(), 1, "the clocks were suspect");
                assert_eq!(statistics(clock).calibrations, 1);
                assert_eq!(
                    (statistics(clock).steps, statistics(clock).wall_steps),
                    (0, 0)
                );
                // An undisturbed read of both clocks measures the error.
                let reads = world.kernel_reads.get();
                assert!(bound(clock) > 0);
                let tries = world.kernel_reads.get() - reads;
                assert!(tries == 1 || !is_fine, "{tries} tries");
            }
        },
    );
}

/// Uses a tick of 42 ns, as many arm64 machines have. The clock smooths the errors of the reads:
/// without that the mean is above 0.37 ticks, and the limit is 0.35.
#[test]
fn at_a_constant_rate_the_mean_error_of_a_segment_is_a_third_of_a_tick() {
    let machines = quiet_machines(0).prop_map(|machine| machine.with_rate(24_000_000));
    check(
        8,
        machines,
        -250_000..=250_000_i64,
        |witness @ Witness { world, clock, .. }, ppb| {
            world.set_slew(ppb);
            witness.watch(SECOND);
            let error = |_| {
                witness.watch(SEGMENT);
                statistics(clock).last_error.as_nanos()
            };
            let sum: u128 = (0..100).map(error).sum();
            assert!(sum <= 35 * 42, "{sum} ns in 100 segments");
        },
    );
}
