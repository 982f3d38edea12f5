//! Counters that must not be used.

use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::select;

use super::witness::{CALIBRATION, SEGMENT, Witness, check};
use super::world::{MICRO, MILLI, Machine, NANO, SECOND, machines, quiet_machines};
use crate::engine::status::{Refusal, State, Status};

/// Fails unless the kernel's clock answers, after an earlier segment has ended.
#[track_caller]
fn assert_off(witness: &Witness, refusal: Refusal) {
    let status = Status::Refused(refusal);
    assert_eq!(witness.status(), status);
    witness.watch(SEGMENT);
    let counted = witness.clock.statistics().vdso_reads;
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
        } = witness.clock.state();
        assert_eq!(
            (now, error_bound, frequency),
            (status, Duration::ZERO, None)
        );
    }
    // The kernel may be asked again during an interrupt.
    assert!(
        witness.clock.statistics().vdso_reads - counted < 10,
        "reads without the counter are counted"
    );
}

/// Returns the status of a counter that is used unless it is refused.
fn status(refusal: Option<Refusal>) -> Status {
    refusal.map_or(Status::Used, Status::Refused)
}

#[test]
fn the_counter_is_used_if_the_kernel_trusts_it_and_else_not_even_read() {
    const RETRIES: &[(Option<Refusal>, u128)] = &[
        (Some(Refusal::Denied), SECOND),
        (Some(Refusal::ClockSourceUnknown), SECOND),
        (Some(Refusal::ClockSource), 10 * SECOND),
        (Some(Refusal::NotInvariant), 10 * SECOND),
        (Some(Refusal::NoCounter), 640 * SECOND),
        (None, 0),
    ];
    let cases = (select(RETRIES), any::<i64>().prop_map(|nanos| nanos >> 4));
    check(
        200,
        quiet_machines(0),
        cases,
        |witness, ((refusal, retry), step)| {
            let Witness { world, clock, .. } = witness;
            world.refusal.set(refusal);
            assert_eq!(clock.check(), refusal.map_or(Ok(()), Err));
            assert_eq!(
                witness.status(),
                Status::Calibrating,
                "a check changes nothing"
            );
            witness.read();
            if let Some(refusal) = refusal {
                assert_off(witness, refusal);
                // The first read of the wall clock, and the first after a step, measures its offset.
                for step in [0, step] {
                    world.step(step);
                    assert!(witness.read_wall().is_some());
                    let reads = world.kernel_reads.get();
                    assert!(clock.slow_realtime().is_some());
                    assert_eq!(world.kernel_reads.get(), reads + 1);
                }
                assert_eq!(world.read_at.get(), 0, "the counter was read");
            }
            world.refusal.set(None);
            world.pass(retry * 9 / 10);
            witness.watch(4 * CALIBRATION);
            assert_eq!(witness.settled(), status(refusal), "asked again early");
            world.pass(retry / 10);
            witness.watch(4 * CALIBRATION);
            assert_eq!((witness.settled(), clock.check()), (Status::Used, Ok(())));
            let statistics = clock.statistics();
            assert_eq!(
                (statistics.refusals, statistics.last_refusal),
                (refusal.is_some().into(), refusal)
            );
        },
    );
}

/// Simulates arm64 with an erratum, where the kernel traps reads by programs and the vDSO makes the
/// system call, and a hypervisor that traps the counter. The clock source is still the counter.
#[test]
fn a_counter_that_the_vdso_does_not_read_quickly_is_refused() {
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
                status(is_slow.then_some(Refusal::SlowVdso))
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
            world.refusal.set(Some(Refusal::ClockSource));
            world.syscall.set(nanos * NANO);
            world.pass(if nanos > 0 { 0 } else { 12 * SECOND });
            if is_wall {
                witness.watch_wall(2 * SEGMENT);
            } else {
                witness.tolerate(true, SEGMENT);
            }
            assert_off(witness, Refusal::ClockSource);
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
            (0..100)
                .take_while(|_| witness.status() == Status::Calibrating)
                .for_each(|_| witness.watch(MILLI));
            assert_off(witness, Refusal::Frequency);
            assert_eq!(clock.check(), Err(Refusal::Frequency));
            // The clock tries again after 10 s, 20 s, and so on, up to 640 s.
            let retries = [10, 20, 40, 80, 160, 320, 640, 640];
            for seconds in retries.into_iter().filter(|_| machine.interrupts == 0) {
                let refusals = clock.statistics().refusals;
                world.pass(seconds * SECOND - 2 * SECOND);
                witness.watch(4 * CALIBRATION);
                assert_eq!(clock.statistics().refusals, refusals, "tried again early");
                world.pass(2 * SECOND);
                witness.watch(4 * CALIBRATION);
                assert_eq!(clock.statistics().refusals, refusals + 1);
            }
        },
    );
}

/// Refuses for other reasons in between: only spoilt calibrations make the pause longer, and no
/// other refusal makes it short again.
#[test]
fn the_pause_after_a_wrong_rate_depends_on_no_refusal_for_another_reason() {
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
            let deny = |refusals: u64| {
                for refusal in [Refusal::Denied, Refusal::ClockSourceUnknown]
                    .into_iter()
                    .cycle()
                    .take(refusals as usize)
                {
                    world.refusal.set(Some(refusal));
                    witness.watch(60 * MICRO);
                    assert_eq!(witness.status(), Status::Refused(refusal));
                    world.pass(2 * SECOND);
                }
                world.refusal.set(None);
            };
            deny(8);
            for seconds in [10, 20, 40] {
                witness.watch(4 * CALIBRATION);
                assert_eq!(witness.status(), Status::Refused(Refusal::Frequency));
                let calibrations = clock.statistics().calibrations;
                world.pass((seconds - 1) * SECOND);
                witness.watch(60 * MICRO);
                assert_eq!(
                    clock.statistics().calibrations,
                    calibrations,
                    "tried again early"
                );
                world.pass(SECOND);
                deny(3);
                witness.watch(60 * MICRO);
                assert_eq!(clock.statistics().calibrations, calibrations + 1);
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
            let asked = world.detections.get();
            clock.forbid_system_calls();
            world.pass(30 * SECOND);
            witness.watch(4 * CALIBRATION);
            let forbidden =
                |is_refused: bool| status(is_refused.then_some(Refusal::SystemCallsForbidden));
            assert_eq!(witness.settled(), forbidden(!is_measured));
            world.syscall.set(if is_slow { MICRO } else { 0 });
            witness.watch(SEGMENT);
            assert_eq!(witness.settled(), forbidden(!is_measured || is_slow));
            assert_eq!(world.detections.get(), asked);
        },
    );
}
