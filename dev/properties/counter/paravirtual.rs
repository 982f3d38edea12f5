//! A clock source that the hypervisor keeps: `kvm-clock`. It can step, and its vDSO can fall back
//! to the system call from one read to the next.

use proptest::prelude::*;

use super::witness::{CALIBRATION, SEGMENT, Witness, check, statistics};
use super::world::{MICRO, NANO, SECOND, quiet_machines};
use crate::engine::source::Source;
use crate::engine::status::{Status, Unavailable};

/// Steps the clock within a segment, which stays as it is. At the end of the second segment after
/// that one the step is removed, and the clock was never on the other side of the kernel's. A clock
/// that learnt a rate from the first sample was 1,027 ns ahead after a step of 1 us, and settled
/// after 43 ms. On counters of 1 to 13 MHz, one that took a tick of noise for the first sample of a
/// new rate was ahead by the whole step.
#[test]
fn a_step_is_not_taken_for_a_change_of_the_rate() {
    let forward = (2.0..10.8_f64).prop_map(|digits| 10_f64.powf(digits) as i64);
    let backward = (2.0..6.4_f64).prop_map(|digits| -10_f64.powf(digits) as i64);
    let cases = (prop_oneof![2 => forward, 1 => backward], 0..40_000_u128);
    check(
        2_000,
        quiet_machines(0),
        cases,
        |witness @ Witness { world, machine, .. }, (step, micros)| {
            witness.watch(8 * CALIBRATION + micros * MICRO);
            let is_removed = world.kernel().wrapping_add_signed(step) + (3 * SEGMENT / 1000) as u64;
            world.step_all(step);
            // A constant rate is followed to 30 ns or three ticks.
            let tick = (1_000_000_000 / machine.hertz) as i64;
            let allowed = 35 + 4 * tick;
            for _ in 0..8 * SEGMENT / (30 * MICRO) {
                let before = world.kernel();
                if let Some(time) = witness.clock.monotonic(Source::ticks_ordered) {
                    let late = (world.read_at.get() as i64 - time as i64) * step.signum();
                    assert!(late >= -allowed, "{} ns too far", -late);
                    assert!(
                        late <= allowed || before < is_removed,
                        "{late} ns are not removed"
                    );
                } else {
                    let time = witness.time();
                    let most = 100 + allowed as u64;
                    let is_near = time + most >= before && time <= world.kernel() + most;
                    assert!(
                        is_near || before < is_removed,
                        "{before} {time} from the vDSO"
                    );
                }
                world.pass(30 * MICRO + u128::from(world.random(30)) * MICRO);
            }
        },
    );
}

/// Takes back the hypervisor's stable bit, so the vDSO makes the system call. A read of the
/// simulated vDSO takes 30 ns. The clock source keeps its name, so only the time shows the change.
/// If the system call takes less than 30 ns more, the noise of the reads can hide it for 10 s.
#[test]
fn a_vdso_that_falls_back_to_system_calls_is_noticed_when_the_segment_ends() {
    let cases = (200..600_u128, 0..40_000_u128);
    check(
        300,
        quiet_machines(1_000_000_000),
        cases,
        |witness, (percent, micros)| {
            let Witness { world, clock, .. } = witness;
            world.is_paravirtual.set(true);
            let entry = 30 * NANO * (percent - 100) / 100;
            world.entry.set(entry);
            witness.watch(4 * CALIBRATION + micros * MICRO);
            let unavailable = Status::Unavailable(Unavailable::SlowVdso);
            // The test need not decide if a system call is that cheap.
            let may_be_unavailable = percent < 250;
            let first = witness.settled();
            if may_be_unavailable && first == unavailable {
                return;
            }
            assert_eq!(
                (first, statistics(clock).times_unavailable),
                (Status::Used, 0)
            );
            world.syscall.set(entry + 5 * NANO);
            witness.tolerate(true, SEGMENT);
            assert_eq!(witness.settled(), unavailable);
            world.syscall.set(0);
            world.pass(11 * SECOND);
            witness.watch(4 * CALIBRATION);
            let last = witness.settled();
            assert!(
                last == Status::Used || may_be_unavailable && last == unavailable,
                "{last}"
            );
        },
    );
}

/// Simulates Hyper-V's clock, which the counter does not use yet, because it was not measured.
#[test]
fn a_clock_with_a_unit_of_100_ns_is_followed_to_two_units() {
    check(
        100,
        quiet_machines(1_000_000_000),
        0..40_000_u128,
        |witness, micros| {
            let Witness { world, clock, .. } = witness;
            world.unit.set(100);
            witness.is_accurate.set(false);
            witness.watch(8 * CALIBRATION + micros * MICRO);
            for _ in 0..4_000 {
                if let Some(time) = clock.monotonic(Source::ticks_ordered) {
                    let error = time.abs_diff(world.read_at.get());
                    assert!(error <= 200, "{error} ns");
                }
                witness.watch(30 * MICRO);
            }
            assert_eq!(
                (witness.settled(), statistics(clock).times_unavailable),
                (Status::Used, 0)
            );
        },
    );
}

/// Hides the CPU's bit, as QEMU does. The sources other than `kvm-clock` have no hypervisor to
/// trust.
#[test]
fn without_the_invariant_bit_only_a_trusted_hypervisor_keeps_a_counter() {
    check(
        50,
        quiet_machines(1_000_000_000),
        any::<[bool; 3]>(),
        |witness, [is_paravirtual, is_trusted, is_early]| {
            let Witness { world, clock, .. } = witness;
            let not_invariant = Unavailable::NotInvariant;
            world.is_paravirtual.set(is_paravirtual);
            world.is_variable.set(true);
            assert_eq!(clock.check(), Err(not_invariant));
            if !is_early {
                witness.read();
                assert_eq!(witness.status(), Status::Unavailable(not_invariant));
            }
            if is_trusted {
                assert_eq!(clock.trust_hypervisor(), is_early);
            }
            let is_used = is_paravirtual && is_trusted && is_early;
            assert_eq!(clock.check().is_ok(), is_used);
            for _ in 0..2 {
                witness.watch(4 * CALIBRATION);
                let status = witness.settled();
                assert_eq!(status.is_used(), is_used, "{status}");
                world.pass(11 * SECOND);
            }
        },
    );
}

/// Makes the CPU slower, so that each read takes half as long again. That is suspect where the vDSO
/// can fall back at any read, and nowhere else.
#[test]
fn reads_that_become_somewhat_slower_are_suspect_only_under_a_hypervisor() {
    check(
        50,
        quiet_machines(1_000_000_000),
        any::<bool>(),
        |witness, is_paravirtual| {
            let Witness { world, .. } = witness;
            world.is_paravirtual.set(is_paravirtual);
            world.entry.set(500 * NANO);
            witness.watch(4 * CALIBRATION);
            let asked = world.detections.get();
            world.syscall.set(25 * NANO);
            witness.watch(3 * SEGMENT);
            assert_eq!(world.detections.get() > asked, is_paravirtual);
            assert_eq!(witness.settled(), Status::Used);
        },
    );
}
