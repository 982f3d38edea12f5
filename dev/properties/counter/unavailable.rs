//! Counters that must not be used.

use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::select;

use super::witness::{CALIBRATION, SEGMENT, Witness, check, statistics};
use super::world::{MICRO, MILLI, Machine, NANO, SECOND, machines, quiet_machines};
use crate::engine::status::{State, Status, Unavailable};

/// Fails unless the kernel's clock answers, after an earlier segment has ended.
#[track_caller]
fn assert_off(witness: &Witness, reason: Unavailable) {
    let status = Status::Unavailable(reason);
    assert_eq!(witness.status(), status);
    witness.watch(SEGMENT);
    let counted = statistics(&witness.clock).vdso_reads;
    for _ in 0..100 {
        let before = witness.world.kernel();
        let nanos = witness.read().unwrap();
        assert!(
            (before..=witness.world.kernel()).contains(&nanos),
            "{nanos} is not the kernel's time"
        );
        let State {
            status: now,
            error_bound,
            frequency,
            ..
        } = witness.clock.state();
        assert_eq!(
            (now, error_bound, frequency),
            (status, Duration::ZERO, None)
        );
    }
    // The kernel may be asked again during an interrupt.
    assert!(
        statistics(&witness.clock).vdso_reads - counted < 10,
        "reads without the counter are counted"
    );
}

/// Returns the status of a counter that is used unless it is unavailable.
fn status(reason: Option<Unavailable>) -> Status {
    reason.map_or(Status::Used, Status::Unavailable)
}

#[test]
fn the_counter_is_used_if_the_kernel_trusts_it_and_else_not_even_read() {
    const RETRIES: &[(Option<Unavailable>, u128)] = &[
        (Some(Unavailable::Denied), SECOND),
        (Some(Unavailable::ClockSourceUnknown), SECOND),
        (Some(Unavailable::ClockSource), 10 * SECOND),
        (Some(Unavailable::NotInvariant), 10 * SECOND),
        (Some(Unavailable::NoCounter), 640 * SECOND),
        (None, 0),
    ];
    let cases = (select(RETRIES), any::<i64>().prop_map(|nanos| nanos >> 4));
    check(
        200,
        quiet_machines(0),
        cases,
        |witness, ((reason, retry), step)| {
            let Witness { world, clock, .. } = witness;
            world.unavailable.set(reason);
            assert_eq!(clock.check(), reason.map_or(Ok(()), Err));
            assert_eq!(
                witness.status(),
                Status::Calibrating,
                "a check changes nothing"
            );
            witness.read();
            if let Some(reason) = reason {
                assert_off(witness, reason);
                // The first read of the wall clock, and the first after a step, measures its
                // offset.
                for step in [0, step] {
                    world.step(step);
                    assert!(witness.read_wall().is_some());
                    let reads = world.kernel_reads.get();
                    assert!(clock.slow_realtime().is_some());
                    assert_eq!(world.kernel_reads.get(), reads + 1);
                }
                assert_eq!(world.read_at.get(), 0, "the counter was read");
            }
            world.unavailable.set(None);
            world.pass(retry * 9 / 10);
            witness.watch(4 * CALIBRATION);
            assert_eq!(witness.settled(), status(reason), "asked again early");
            world.pass(retry / 10);
            witness.watch(4 * CALIBRATION);
            assert_eq!((witness.settled(), clock.check()), (Status::Used, Ok(())));
            let statistics = statistics(clock);
            assert_eq!(
                (statistics.times_unavailable, statistics.last_unavailable),
                (reason.is_some().into(), reason)
            );
        },
    );
}

/// Simulates arm64 with an erratum, where the kernel traps reads by programs and the vDSO makes the
/// system call, and a hypervisor that traps the counter. The clock source is still the counter.
#[test]
fn a_counter_that_the_vdso_does_not_read_quickly_is_unavailable() {
    // An interrupt in each of three tries leaves it undecided.
    let machines = machines().prop_map(|machine| Machine {
        interrupts: machine.interrupts.min(300),
        ..machine
    });
    check(
        200,
        machines,
        (500..2_000_u128, 0..3_u8),
        |witness @ Witness { world, .. }, (nanos, kind)| {
            let is_slow = kind > 0;
            world.syscall.set(if is_slow { nanos * NANO } else { 0 });
            world.entry.set(if kind == 2 {
                (nanos + 100) * NANO
            } else {
                nanos * NANO
            });
            witness.is_accurate.set(false);
            witness.watch(8 * CALIBRATION);
            assert_eq!(
                witness.settled(),
                status(is_slow.then_some(Unavailable::SlowVdso))
            );
        },
    );
}

/// Switches the clock source. The cost shows it if the vDSO then makes a system call. If the vDSO
/// reads the other source too, the kernel's next answer shows it, at most 10 s later. The kernel's
/// clock may be behind. The wall clock does not change while a segment is in force.
#[test]
fn a_switched_clock_source_is_noticed() {
    // The cost must be more than a tick.
    let machines = machines().prop_map(|machine| machine.at_least(20_000_000));
    let cases = (
        prop_oneof![Just(0), 300..3_000_u128],
        30_000..100_000_u128,
        any::<[bool; 2]>(),
    );
    check(
        800,
        machines,
        cases,
        |witness @ Witness { world, .. }, (nanos, micros, [is_wall, is_behind])| {
            witness.watch(micros * MICRO);
            assert_eq!(witness.settled(), Status::Used);
            world.set_slew(if is_behind && !is_wall {
                -100_000_000
            } else {
                0
            });
            world.unavailable.set(Some(Unavailable::ClockSource));
            world.syscall.set(nanos * NANO);
            world.pass(if nanos > 0 { 0 } else { 12 * SECOND });
            if is_wall {
                witness.watch_wall(2 * SEGMENT);
            } else {
                witness.tolerate(true, SEGMENT);
            }
            assert_off(witness, Unavailable::ClockSource);
        },
    );
}

#[test]
fn a_counter_with_another_rate_than_stated_or_possible_is_not_used() {
    let stated = (
        20_000_000..10_000_000_000_u64,
        prop_oneof![1011..2_000_u64, 500..989_u64],
    )
        .prop_map(|(hertz, mille)| (hertz, Some(hertz / 1000 * mille)));
    let impossible = prop_oneof![0..900_000_u64, 70_000_000_000..500_000_000_000_u64];
    let rates = prop_oneof![stated, impossible.prop_map(|hertz| (hertz, None))];
    let machines = (machines(), rates).prop_map(|(machine, (hertz, stated_hertz))| Machine {
        hertz,
        stated_hertz,
        ..machine
    });
    check(
        400,
        machines,
        Just(()),
        |witness @ Witness {
             machine,
             world,
             clock,
             ..
         },
         ()| {
            assert_eq!(clock.check(), Ok(()));
            // An interrupt makes a calibration longer.
            for _ in 0..100 {
                if witness.status() != Status::Calibrating {
                    break;
                }
                witness.watch(MILLI);
            }
            assert_off(witness, Unavailable::Frequency);
            assert_eq!(clock.check(), Err(Unavailable::Frequency));
            // The clock tries again after 10 s, 20 s, and so on, up to 640 s.
            let retries = [10, 20, 40, 80, 160, 320, 640, 640];
            if machine.interrupts > 0 {
                return;
            }
            for seconds in retries {
                let times_unavailable = statistics(clock).times_unavailable;
                world.pass(seconds * SECOND - 2 * SECOND);
                witness.watch(4 * CALIBRATION);
                assert_eq!(
                    statistics(clock).times_unavailable,
                    times_unavailable,
                    "tried again early"
                );
                world.pass(2 * SECOND);
                witness.watch(4 * CALIBRATION);
                assert_eq!(statistics(clock).times_unavailable, times_unavailable + 1);
            }
        },
    );
}

/// Makes the counter unavailable for other reasons in between: only corrupted calibrations make the
/// pause longer, and no other reason makes it short again.
#[test]
fn the_pause_after_a_wrong_rate_depends_on_no_other_reason() {
    let machines = (quiet_machines(0), 0..900_000_u64).prop_map(|(machine, hertz)| Machine {
        hertz,
        stated_hertz: None,
        ..machine
    });
    check(
        50,
        machines,
        Just(()),
        |witness @ Witness { world, clock, .. }, ()| {
            let deny = |times_unavailable: u64| {
                for reason in [Unavailable::Denied, Unavailable::ClockSourceUnknown]
                    .into_iter()
                    .cycle()
                    .take(times_unavailable as usize)
                {
                    world.unavailable.set(Some(reason));
                    witness.watch(60 * MICRO);
                    assert_eq!(witness.status(), Status::Unavailable(reason));
                    world.pass(2 * SECOND);
                }
                world.unavailable.set(None);
            };
            deny(8);
            for seconds in [10, 20, 40] {
                witness.watch(4 * CALIBRATION);
                assert_eq!(
                    witness.status(),
                    Status::Unavailable(Unavailable::Frequency)
                );
                let calibrations = statistics(clock).calibrations;
                world.pass((seconds - 1) * SECOND);
                witness.watch(60 * MICRO);
                assert_eq!(
                    statistics(clock).calibrations,
                    calibrations,
                    "tried again early"
                );
                world.pass(SECOND);
                deny(3);
                witness.watch(60 * MICRO);
                assert_eq!(statistics(clock).calibrations, calibrations + 1);
            }
        },
    );
}

/// Makes a switch that costs nothing, and one that makes each read a system call.
#[test]
fn a_clock_that_must_not_ask_uses_a_counter_that_is_not_suspect() {
    // The cost must be more than a tick.
    check(
        100,
        quiet_machines(20_000_000),
        any::<[bool; 2]>(),
        |witness, [is_measured, is_slow]| {
            let Witness { world, clock, .. } = witness;
            witness.watch(if is_measured { 2 * CALIBRATION } else { 0 });
            let start = world.kernel();
            assert_eq!(clock.prepare_for_sandbox(), Status::Used);
            let passed = world.kernel() - start;
            assert!(
                passed < if is_measured { 1_000_000 } else { 12_000_000 },
                "{passed} ns"
            );
            let asked = world.detections.get();
            world.pass(30 * SECOND);
            witness.watch(4 * CALIBRATION);
            assert_eq!(witness.settled(), Status::Used);
            assert_eq!(clock.check(), Ok(()));
            world.syscall.set(if is_slow { MICRO } else { 0 });
            witness.watch(SEGMENT);
            let reason = is_slow.then_some(Unavailable::SystemCallsForbidden);
            assert_eq!(witness.settled(), status(reason));
            assert_eq!(clock.prepare_for_sandbox(), status(reason), "a second call");
            assert_eq!(clock.check(), reason.map_or(Ok(()), Err));
            assert_eq!(world.detections.get(), asked);
        },
    );
}

/// Denies the clock, makes the counter unavailable, or preempts the reader: then the preparation
/// ends without a measurement.
#[test]
fn a_preparation_for_a_sandbox_takes_50_ms_at_most_and_returns_what_the_sandbox_has() {
    let cases = (0..3_u8, 2..5_u32);
    check(100, quiet_machines(0), cases, |witness, (kind, read)| {
        let Witness { world, clock, .. } = witness;
        assert!(!clock.was_read());
        let start = world.kernel();
        let reason = match kind {
            0 => {
                world.is_denied.set(true);
                Unavailable::SystemCallsForbidden
            }
            1 => {
                world.unavailable.set(Some(Unavailable::ClockSource));
                Unavailable::ClockSource
            }
            _ => {
                world.preemption.set((read, 60 * MILLI));
                Unavailable::SystemCallsForbidden
            }
        };
        let found = clock.prepare_for_sandbox();
        let passed = world.kernel() - start;
        if kind < 2 {
            assert!(passed < 100_000, "{passed} ns");
        } else {
            assert!(passed < 61_000_000, "{passed} ns");
        }
        world.is_denied.set(false);
        world.unavailable.set(None);
        let asked = world.detections.get();
        let last = witness.settled();
        if kind == 1 {
            assert_eq!((found, last), (status(Some(reason)), found));
            assert_eq!(clock.check(), Err(reason));
        } else if kind == 0 {
            assert_eq!(found, Status::Calibrating, "a denied clock decides nothing");
            assert_eq!((last, clock.check()), (status(Some(reason)), Err(reason)));
        } else {
            assert!(
                matches!(found, Status::Calibrating | Status::Used),
                "{found}"
            );
        }
        assert!(clock.was_read());
        world.pass(12 * SECOND);
        witness.watch(4 * CALIBRATION);
        if kind < 2 {
            let forbidden = Unavailable::SystemCallsForbidden;
            assert_eq!(witness.settled(), status(Some(forbidden)));
            assert_eq!(clock.check(), Err(forbidden));
        } else {
            assert_eq!((witness.settled(), clock.check()), (Status::Used, Ok(())));
        }
        assert_eq!(world.detections.get(), asked);
    });
}
