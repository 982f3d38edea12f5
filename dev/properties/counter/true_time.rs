//! The limits of the true time.

use proptest::prelude::*;
use proptest::sample::select;
use vdso_time::Errno;

use super::wall::steps;
use super::witness::{CALIBRATION, SEGMENT, Witness, check};
use super::world::{MICRO, MILLI, Machine, NANO, SECOND, World, machines, quiet_machines};
use crate::engine::bounded::{Bounds, GROWTH};
use crate::engine::interval::{ClockStatus, Interval};

/// What a process knows of the true time. Fails unless the truth is within the limits.
struct Observer<'a> {
    witness: &'a Witness,
    bounds: Bounds,
    /// The most that the clock drifts from the truth, in parts per billion.
    drift: u32,
}

impl<'a> Observer<'a> {
    fn new(witness: &'a Witness, drift: u32) -> Self {
        Self { witness, bounds: Bounds::new(), drift }
    }

    #[track_caller]
    fn interval(&self) -> Interval {
        let before = self.witness.world.truth();
        let interval = self.bounds.limits(&self.witness.clock, self.drift).unwrap();
        let after = self.witness.world.truth();
        let [earliest, latest] = limits(&interval);
        assert!(earliest <= after && before <= latest, "{before}..{after} is not within {interval:?}");
        assert_eq!(interval.status.is_bounded(), latest.abs_diff(earliest) < u64::MAX);
        interval
    }

    /// The width of the limits and the status.
    #[track_caller]
    fn look(&self) -> (u64, ClockStatus) {
        let interval = self.interval();
        let [earliest, latest] = limits(&interval);
        (latest.abs_diff(earliest), interval.status)
    }

    /// The same when the kernel must have been asked again.
    #[track_caller]
    fn look_later(&self) -> (u64, ClockStatus) {
        self.witness.world.pass(SECOND);
        self.witness.tolerate(true, SEGMENT + 2 * CALIBRATION);
        self.look()
    }
}

fn limits(interval: &Interval) -> [i64; 2] {
    [interval.earliest, interval.latest].map(|limit| limit.as_nanos() as i64)
}

const NTP: u32 = GROWTH as u32;

/// Checks what holds for an observer of each machine, with a drift of NTP's size.
#[track_caller]
fn check_quiet<C: Strategy>(usual: u32, cases: C, holds: impl Fn(&Observer<'_>, &World, C::Value)) {
    check(usual, quiet_machines(0), cases, |witness, case| {
        holds(&Observer::new(witness, NTP), &witness.world, case);
    });
}

fn status(is_synchronized: bool) -> ClockStatus {
    if is_synchronized { ClockStatus::Synchronized } else { ClockStatus::FreeRunning }
}

#[test]
fn the_true_time_is_within_the_limits_also_if_the_wall_clock_is_set_and_slewed() {
    let cases = (steps(), select(&[NTP / 2, NTP][..]));
    check(60, machines(), cases, |witness @ Witness { machine, world, .. }, (steps, drift)| {
        let observer = Observer::new(witness, drift);
        for (turn, (nanos, ppb, millis)) in steps.into_iter().enumerate() {
            for _ in 0..10 {
                observer.look();
                witness.tolerate(true, millis * MILLI / 10);
            }
            // Even if the clock is set right, or wrong, just after the kernel was asked.
            world.step(if turn % 3 == 0 { world.truth() - world.wall() } else { nanos });
            observer.look();
            world.set_slew(ppb);
            let is_synchronized = turn % 2 == 0;
            world.state_truly(is_synchronized);
            let (width, status_then) = observer.look_later();
            let error = world.error();
            if machine.interrupts == 0 && error < 15_000_000_000 {
                assert!(width <= 2 * error + 6_000_000, "{width} ns of limits for an error of {error} ns");
                assert_eq!(status_then, status(is_synchronized));
            }
        }
    });
}

/// What a commit waits for. Both intervals contain the truth, so they cannot overlap any more.
#[test]
fn an_interval_is_before_a_later_one_when_more_time_has_passed_than_both_are_wide() {
    let cases = (-10_000_000..10_000_000_i64, 0..200_u128);
    check_quiet(100, cases, |observer, world, (error, millis)| {
        let unknown = observer.interval();
        world.set_wrong_by(error);
        world.state_truly(true);
        observer.look_later();
        let (first, start) = (observer.interval(), world.truth());
        world.pass(millis * MILLI);
        let (passed, second) = (world.truth() - start, observer.interval());
        let widths: i64 =
            [first, second].iter().map(limits).map(|[earliest, latest]| latest - earliest).sum();
        assert!(first.is_before(&second) || passed <= widths, "{passed} ns, {widths} ns wide");
        assert!(!second.is_before(&first) && !first.is_before(&first));
        assert!(!unknown.is_before(&second) && !second.is_before(&unknown));
    });
}

/// The kernel adds 500 us a second to `maxerror`, so that a program's 1 ms is 33 ms a minute later.
#[test]
fn the_bound_grows_by_the_drift_that_was_chosen() {
    check(20, quiet_machines(20_000_000), Just(()), |witness @ Witness { world, .. }, ()| {
        let observers = [0, 50_000, NTP].map(|drift| Observer::new(witness, drift));
        world.set_wrong_by(0);
        world.state_truly(true);
        let look = || {
            witness.watch(2 * CALIBRATION);
            observers.each_ref().map(|observer| observer.look().0)
        };
        let first = look();
        world.pass(60 * SECOND);
        let last = look();
        for ((first, last), drift) in first.into_iter().zip(last).zip([0, 50_000, 500_000_u64]) {
            let expected = 2 * 60 * drift;
            assert!(last.abs_diff(first + expected) < 40_000, "{first} {last} {drift}");
        }
        // The first call comes a minute after a statement: then it is the kernel's growth.
        let late = Observer::new(witness, 0).look().0;
        assert!(late.abs_diff(last[2]) < 1_100_000, "{late} {last:?}");
    });
}

#[test]
fn what_the_kernel_has_yet_to_correct_counts_and_a_stated_0_is_no_bound() {
    check_quiet(50, (-400_000_000..400_000_000_i64, 0..3_u64), |observer, world, (error, known)| {
        world.set_wrong_by(error);
        // At most a quarter of the correction is under way.
        world.state(known, error.unsigned_abs() * 3 / 4, true);
        let expected = if known == 0 { ClockStatus::Unknown } else { ClockStatus::Synchronized };
        for _ in 0..5 {
            assert_eq!(observer.look_later().1, expected);
        }
        world.pass(40_000 * SECOND);
        assert_eq!(observer.look().1, ClockStatus::Unknown, "16 s is no bound, either");
    });
}

/// The kernel adds to `maxerror` at the end of each second, so it can lack the drift of one.
#[test]
fn the_drift_of_a_second_is_added_before_the_kernel_adds_it() {
    check(50, quiet_machines(0), any::<bool>(), |witness @ Witness { world, .. }, is_fast| {
        world.set_wrong_by(0);
        world.pass(SECOND - u128::from(world.kernel()) % 1_000_000_000 * NANO);
        world.state(world.error() / 1000 + 1, 0, true);
        world.set_slew(if is_fast { 250_000 } else { -250_000 });
        world.pass(990 * MILLI);
        assert_eq!(Observer::new(witness, NTP / 2).look().1, ClockStatus::Synchronized);
    });
}

/// A statement can look like what the kernel adds: the same estimate, and some times 500 us more.
#[test]
fn a_larger_error_counts_also_if_it_looks_like_the_kernels() {
    let machines = quiet_machines(0).prop_map(|machine| Machine { seed: machine.seed & !1, ..machine });
    check(50, machines, 1_000..1_000_000_u64, |witness @ Witness { world, .. }, more| {
        let observer = Observer::new(witness, 0);
        world.set_wrong_by(0);
        world.state(1_001, 0, true);
        observer.look_later();
        // The hypervisor stops the machine and does not say so, but the daemon sees it.
        world.freeze(u128::from(more) * MICRO);
        world.state((world.error() / 1000).next_multiple_of(500) + 1_001, 0, true);
        assert!(observer.look_later().1.is_bounded());
    });
}

/// A restored or moved machine, and a suspended one, whose kernel takes the time from a clock chip.
#[test]
fn a_disrupted_clock_has_no_bound_until_an_error_is_stated() {
    let cases = (any::<[bool; 3]>(), 2_000..10_000_000_000_u64);
    check_quiet(60, cases, |observer, world, ([is_suspend, comes_late, is_synchronized], error)| {
        let state_right = || {
            world.set_wrong_by(0);
            world.state_truly(true);
        };
        state_right();
        if !comes_late || is_suspend {
            assert_eq!(observer.look_later().1, ClockStatus::Synchronized);
        }
        for _ in 0..3 {
            // The kernel's clock is wrong then, and it does not know it.
            if is_suspend {
                world.suspend(2 * SECOND, false);
                world.shift(error as i64);
                observer.witness.tolerate(true, SEGMENT + 2 * CALIBRATION);
            } else {
                world.restore(u128::from(error) * NANO);
            }
            for _ in 0..3 {
                assert_eq!(observer.look().1, ClockStatus::Disrupted);
                assert_eq!(observer.look_later().1, ClockStatus::Disrupted);
            }
            world.state_truly(is_synchronized);
            assert_eq!(observer.look_later().1, status(is_synchronized));
            state_right();
            assert_eq!(observer.look_later().1, ClockStatus::Synchronized);
        }
    });
}

#[test]
fn a_machine_that_is_moved_during_a_call_has_no_wrong_limits() {
    check(20, quiet_machines(0), any::<bool>(), |Witness { machine, .. }, is_asked| {
        for at in 1..40 {
            let witness = Witness::new(*machine);
            let (world, observer) = (&witness.world, Observer::new(&witness, NTP));
            world.set_wrong_by(0);
            world.state_truly(true);
            observer.look_later();
            // No segment is in force: so the kernel's clock is read.
            world.pass(if is_asked { SECOND } else { 100 * MILLI });
            world.restored_at.set(world.kernel_reads.get() + at);
            observer.look();
            if world.marker.get() > 0 {
                assert_eq!(observer.look().1, ClockStatus::Disrupted);
            }
        }
    });
}

#[test]
fn the_kernel_is_asked_for_its_error_once_a_second_and_after_a_step() {
    let step = prop_oneof![2_000..1_000_000_000_i64, -1_000_000_000..-2_000_i64];
    check(50, quiet_machines(20_000_000), step, |witness @ Witness { world, .. }, step| {
        let observer = Observer::new(witness, NTP);
        let asked = |picos: u128| {
            world.pass(picos);
            witness.watch(SEGMENT);
            observer.look();
            world.asked.get()
        };
        let wait = SECOND - 2 * SEGMENT;
        assert_eq!([asked(2 * CALIBRATION), asked(wait), asked(2 * SEGMENT), asked(wait)], [1, 1, 2, 2]);
        world.step(step);
        assert_eq!([asked(0), asked(wait)], [3, 3]);
        world.marker.set(1);
        assert_eq!([asked(0), asked(0)], [4, 4]);
    });
}

#[test]
fn a_denied_clock_or_forbidden_system_calls_give_no_limits() {
    check(20, quiet_machines(0), Just(()), |Witness { world, clock, .. }, ()| {
        let bounds = Bounds::new();
        let limits = || bounds.limits(clock, NTP);
        world.is_denied.set(true);
        assert_eq!(limits(), Err(Errno::EPERM));
        world.is_denied.set(false);
        assert!(limits().is_ok());
        clock.forbid_system_calls();
        assert!(limits().is_ok(), "the last answer is kept for a second");
        world.pass(SECOND);
        assert_eq!(limits(), Err(Errno::EPERM));
    });
}

#[test]
fn a_clock_that_is_denied_while_a_segment_is_in_force_gives_no_limits() {
    check(20, quiet_machines(0), Just(()), |witness, ()| {
        let bounds = Bounds::new();
        witness.watch_until_used();
        assert!(bounds.limits(&witness.clock, NTP).is_ok());
        witness.world.is_denied.set(true);
        assert_eq!(bounds.limits(&witness.clock, NTP), Err(Errno::EPERM));
    });
}
