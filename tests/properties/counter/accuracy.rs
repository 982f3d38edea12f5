//! Whatever happens to a machine, the time never goes back and is within the error bound.

use std::cell::Cell;

use proptest::collection::vec;
use proptest::prelude::*;

use super::witness::{CALIBRATION, SEGMENT, Witness};
use super::world::{MICRO, MILLI, Machine, NANO, SECOND, machine};
use crate::cases::check;
use crate::source::source::Source as _;
use crate::source::status::Status;

#[derive(Clone, Copy, Debug)]
enum Event {
    /// So many reads, with up to so many nanoseconds in between.
    Reads(u16, u64),
    /// Nobody reads for so many microseconds.
    Idle(u64),
    /// The same for seconds, in which the system is suspended for so many parts per billion. That
    /// looks like a change of the rate, and is taken for one if NTP could have made it.
    Nap(u128, u128),
    /// NTP makes the kernel's clock faster or slower, by up to 250 ppm.
    Discipline(i64),
    /// For so many milliseconds; and whether the counter jumps.
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

/// The end of a segment by a counter four times as slow; and two calibrations, one of them spoilt.
const OLD_SEGMENT: u128 = 4 * SEGMENT;
const SETTLED: u128 = OLD_SEGMENT + SEGMENT + 2 * CALIBRATION;

fn live(witness: &Witness, machine: Machine, event: Event) {
    let world = &witness.world;
    // The clock notices it when the segment ends. It can spoil a calibration, and so one segment.
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
        Event::Suspend(millis, jumps) => disrupt(&|| world.suspend(u128::from(millis) * MILLI, jumps)),
        Event::Migrate(part) => {
            disrupt(&|| world.migrate((machine.hertz / 100 * part).clamp(1_000_000, 64_000_000_000)));
        }
    }
}

#[test]
fn the_time_never_goes_back_and_is_within_the_error_bound() {
    check(3_000, &(machine(), vec(event(), 1..12)), |(machine, events)| {
        let witness = Witness::new(machine);
        for event in events {
            live(&witness, machine, event);
        }
        witness.watch(SETTLED + MILLI);
        assert_eq!(witness.settled(), Status::Used, "in the end");
        true
    });
}

/// The kernel's rate changes by 500 ppm just after a segment was made, or just before it ends. It
/// may have been slewed by 10 % for some time.
#[test]
fn the_error_bound_holds_up_to_the_end_of_a_segment() {
    let change = prop_oneof![Just(-250_000), Just(250_000), -250_000..=250_000_i64];
    let rounds = vec((change, [0..260_000_u64, 0..4_000, 0..4_000], 1..400_u64), 1..20);
    let slew = prop_oneof![Just(0), -100_000_000..=100_000_000_i64];
    check(1_000, &(machine(), slew, rounds), |(machine, slew, rounds)| {
        let witness = Witness::new(machine);
        witness.watch(2 * CALIBRATION);
        witness.world.set_slew(slew);
        witness.tolerate(true, 3 * SEGMENT);
        for (ppb, before_end, gap) in rounds {
            witness.watch(2 * SEGMENT);
            for (nanos, is_change) in before_end.into_iter().zip([true, false, false]) {
                witness.world.pass(witness.left().saturating_sub(u128::from(nanos) * NANO));
                witness.read();
                if is_change {
                    // The bound is in ppm of the kernel's time, which a slew makes 10 % shorter.
                    witness.world.set_slew(slew + ppb * 9 / 10);
                }
                for _ in 0..100 {
                    witness.read();
                    witness.world.pass(u128::from(gap) * NANO);
                }
            }
        }
        true
    });
}

/// Up to 500 ppm from the counter's. 30 ns hold for counters of at least 100 MHz.
#[test]
fn a_constant_rate_is_measured_to_10_ppm_and_followed_to_30_ns() {
    check(500, &(machine(), -500_000..=500_000_i64), |(machine, ppb)| {
        let witness = Witness::new(machine);
        witness.world.set_slew(ppb);
        witness.watch(SECOND / 4);
        witness.limit.set(if machine.hertz < 100_000_000 { u64::MAX } else { 30 });
        for _ in 0..10_000 {
            witness.watch(30 * MICRO);
            assert!(machine.interrupts > 0 || witness.status() == Status::Used, "a segment ended");
        }
        assert_eq!(witness.settled(), Status::Used);
        let second = 1_000_000_000_u128.saturating_add_signed(ppb.into());
        let expected = (u128::from(machine.hertz) * 1_000_000_000 / second) as u64;
        let measured = witness.clock.state().frequency.unwrap();
        assert!(measured.abs_diff(expected) <= expected / 100_000 + 200, "{measured} Hz, not {expected}");
        if machine.interrupts == 0 {
            assert_eq!(witness.world.detections.get(), 1, "the clocks were suspect");
            assert_eq!(witness.clock.statistics().calibrations, 1);
            // An undisturbed read of both clocks measures the error.
            let reads = witness.world.kernel_reads.get();
            assert!(witness.clock.error_bound() > 0);
            let tries = witness.world.kernel_reads.get() - reads;
            assert!(tries == 1 || machine.hertz < 100_000_000, "{tries} tries");
        }
        true
    });
}

/// A tick takes 42 ns, as on many arm64 machines. The errors of the reads are smoothed: without
/// that, the mean is above 0.37 ticks; the limit is 0.35.
#[test]
fn at_a_constant_rate_the_mean_error_of_a_segment_is_a_third_of_a_tick() {
    check(8, &(machine(), -250_000..=250_000_i64), |(machine, ppb)| {
        let machine = Machine { hertz: 24_000_000, stated_hertz: None, interrupts: 0, ..machine };
        let witness = Witness::new(machine);
        witness.world.set_slew(ppb);
        witness.watch(SECOND);
        let errors = (0..100).map(|_| {
            witness.watch(SEGMENT);
            witness.clock.statistics().last_error.as_nanos()
        });
        let sum: u128 = errors.sum();
        assert!(sum <= 35 * 42, "{sum} ns in 100 segments");
        true
    });
}

/// Each value of the counter, and the kernel's time when it was read, from one read per 40 ms.
fn collect(witness: &Witness, values: &mut Vec<(u64, u64)>, reads: u32) {
    for _ in 0..reads {
        let ticks = witness.world.ticks_ordered();
        values.push((ticks, witness.world.read_at.get()));
        witness.world.pass(u128::from(witness.world.random(80)) * MILLI);
        witness.read();
    }
}

#[test]
fn ticks_convert_to_the_time_of_their_read_and_their_rate_is_exact_to_5_ppb_after_a_minute() {
    check(100, &(machine(), -250_000..=250_000_i64), |(machine, ppb)| {
        let hertz = machine.hertz.max(100_000_000); // a tick is short compared with a read
        let stated_hertz = machine.stated_hertz.map(|_| hertz);
        let witness = Witness::new(Machine { hertz, stated_hertz, interrupts: 0, ..machine });
        witness.world.set_slew(ppb);
        let early = (witness.world.ticks_ordered(), witness.world.read_at.get());
        assert_eq!(witness.clock.nanos_of(early.0), None, "nothing is measured yet");
        witness.watch(2 * CALIBRATION);
        let mut values = vec![early];
        collect(&witness, &mut values, 1600);
        for (ticks, nanos) in values {
            let converted = witness.clock.nanos_of(ticks).unwrap();
            assert!(converted.abs_diff(nanos) <= 60, "{converted} and not {nanos}");
        }
        let second = 1_000_000_000 + i128::from(ppb);
        let expected = (i128::from(hertz) * 1_000_000_000 + second / 2) / second;
        let frequency = i128::from(witness.clock.state().frequency.unwrap());
        let error = (frequency - expected).abs();
        assert!(error <= expected / 200_000_000 + 1, "{frequency} and not {expected} Hz");
        true
    });
}

/// 500 ppm of the age: the rate then and the mean rate differ by so much at most.
#[test]
fn ticks_convert_within_the_stated_error_while_ntp_changes_the_rate() {
    let changes = vec((-250_000..=250_000_i64, 1..100_u32), 1..10);
    check(300, &(machine(), changes), |(machine, changes)| {
        // A tick of 1 us looks like 100 ppm, which with the greatest change begins a calibration.
        let hertz = machine.hertz.max(10_000_000);
        let witness = Witness::new(Machine { hertz, stated_hertz: None, interrupts: 0, ..machine });
        witness.watch(2 * CALIBRATION);
        let mut values = Vec::new();
        for (ppb, reads) in changes {
            witness.watch(SEGMENT);
            let ticks = Cell::new(0);
            let nanos = witness.clock.monotonic(|world| {
                ticks.set(world.ticks_ordered());
                ticks.get()
            });
            assert!(nanos.is_none() || witness.clock.nanos_of(ticks.get()) == nanos, "{nanos:?}");
            witness.world.set_slew(ppb);
            collect(&witness, &mut values, reads);
            for &(ticks, nanos) in &values {
                let converted = witness.clock.nanos_of(ticks).unwrap();
                let limit = (witness.world.kernel() - nanos) / 2000 + 1_000;
                assert!(converted.abs_diff(nanos) <= limit, "{converted} and not {nanos}");
            }
        }
        true
    });
}

/// The rate of a pair of reads with a pause between them is not the kernel's.
#[test]
fn a_preemption_within_the_call_does_not_widen_the_bound() {
    check(100, &(machine(), 1..1_000_u128, 3..12_u128), |(machine, millis, at)| {
        let hertz = machine.hertz.max(20_000_000); // the rate of some ms has an error of a tick
        let witness =
            Witness::new(Machine { hertz, stated_hertz: None, interrupts: 0, is_shared: false, ..machine });
        let Witness { world, clock, .. } = &*witness;
        witness.watch(3 * CALIBRATION + at * MILLI);
        witness.read();
        let quiet = world.foresee(0, || clock.error_bound());
        world.preemption.set((world.kernel_reads.get() + 1, millis * MILLI));
        let bound = clock.error_bound();
        assert!(bound <= 2 * quiet + 20_000, "{bound} ns after {quiet}, preempted for {millis} ms");
        true
    });
}
