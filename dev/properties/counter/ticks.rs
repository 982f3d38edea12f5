//! Values of the counter are converted to the time at which they were read.

use std::cell::Cell;

use proptest::collection::vec;
use proptest::prelude::*;

use super::witness::{CALIBRATION, SEGMENT, Witness, check};
use super::world::{MICRO, MILLI, SECOND, quiet_machines};
use crate::engine::source::Source as _;

/// Returns a value of the counter, and the kernel's time when it was read.
fn read(Witness { world, .. }: &Witness) -> (u64, u64) {
    (world.ticks_ordered(), world.read_at.get())
}

/// Values from one read per 40 ms.
fn collect(witness: &Witness, values: &mut Vec<(u64, u64)>, reads: u32) {
    for _ in 0..reads {
        values.push(read(witness));
        witness
            .world
            .pass(u128::from(witness.world.random(80)) * MILLI);
        witness.read();
    }
}

#[test]
fn ticks_convert_to_the_time_of_their_read_and_their_rate_is_exact_to_5_ppb_after_a_minute() {
    // A tick is short compared with a read.
    check(
        100,
        quiet_machines(100_000_000),
        -250_000..=250_000_i64,
        |witness, ppb| {
            let Witness {
                machine,
                world,
                clock,
                ..
            } = witness;
            world.set_slew(ppb);
            let mut values = vec![read(witness)];
            assert_eq!(clock.nanos_of(values[0].0), None, "nothing is measured yet");
            witness.watch(2 * CALIBRATION);
            collect(witness, &mut values, 1600);
            for (ticks, nanos) in values {
                let converted = clock.nanos_of(ticks).unwrap();
                assert!(
                    converted.abs_diff(nanos) <= 60,
                    "{converted} and not {nanos}"
                );
            }
            let second = 1_000_000_000 + i128::from(ppb);
            let expected = (i128::from(machine.hertz) * 1_000_000_000 + second / 2) / second;
            let frequency = i128::from(clock.state().frequency.unwrap());
            let error = (frequency - expected).abs();
            assert!(
                error <= expected / 200_000_000 + 1,
                "{frequency} and not {expected} Hz"
            );
        },
    );
}

/// Allows 500 ppm of the age, by which the rate then and the mean rate may differ.
#[test]
fn ticks_convert_within_the_stated_error_while_ntp_changes_the_rate() {
    let changes = vec((-250_000..=250_000_i64, 1..100_u32), 1..10);
    // At 10 MHz or more. With a tick of 1 us, the error of a read looks like 100 ppm, which
    // together with the greatest change would begin a calibration.
    check(
        300,
        quiet_machines(10_000_000),
        changes,
        |witness @ Witness { world, clock, .. }, changes| {
            witness.watch(2 * CALIBRATION);
            let mut values = Vec::new();
            for (ppb, reads) in changes {
                witness.watch(SEGMENT);
                let ticks = Cell::new(0);
                let nanos = clock.monotonic(|world| {
                    ticks.set(world.ticks_ordered());
                    ticks.get()
                });
                assert!(
                    nanos.is_none() || clock.nanos_of(ticks.get()) == nanos,
                    "{nanos:?}"
                );
                world.set_slew(ppb);
                collect(witness, &mut values, reads);
                for &(ticks, nanos) in &values {
                    let converted = clock.nanos_of(ticks).unwrap();
                    let limit = (world.kernel() - nanos) / 2000 + 1_000;
                    assert!(
                        converted.abs_diff(nanos) <= limit,
                        "{converted} and not {nanos}"
                    );
                }
            }
        },
    );
}

/// Slews the clock for a minute, as chrony does, and converts values of the time after it. With the
/// mean rate since the first sample they were wrong by up to 75 ms, for minutes.
#[test]
fn after_a_long_slew_ticks_convert_by_the_rate_since_its_end() {
    const CHRONY: i64 = 83_333_000;
    let slew = prop_oneof![Just(CHRONY), Just(-CHRONY), 20_000_000..100_000_000_i64];
    check(
        20,
        quiet_machines(10_000_000),
        (slew, 0..20_u128),
        |witness, (slew, millis)| {
            let Witness { world, clock, .. } = witness;
            let pass = |picos: u128| {
                for _ in 0..picos / (900 * MICRO) {
                    world.pass(900 * MICRO);
                    witness.time();
                }
            };
            witness.watch(2 * CALIBRATION + millis * MILLI);
            for ppb in [slew, 0] {
                pass(60 * SECOND);
                world.set_slew(ppb);
                pass(5 * SEGMENT);
                let values: Vec<_> = (0..10)
                    .map(|_| {
                        pass(SECOND / 10);
                        read(witness)
                    })
                    .collect();
                pass(SECOND);
                for (ticks, nanos) in values {
                    let converted = clock.nanos_of(ticks).unwrap();
                    let error = converted.abs_diff(nanos);
                    assert!(error <= 20_000, "{error} ns at {ppb} ppb");
                }
                let second = 1_000_000_000_u128.saturating_add_signed(ppb.into());
                let hertz = (u128::from(witness.machine.hertz) * 1_000_000_000 / second) as u64;
                witness.assert_frequency(hertz, hertz / 100_000);
            }
        },
    );
}
