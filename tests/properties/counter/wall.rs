//! The wall clock when somebody sets it, and the limits of the true time.

use proptest::collection::vec;
use proptest::prelude::*;
use vdso_time::Errno;

use super::witness::{CALIBRATION, SEGMENT, Witness};
use super::world::{MICRO, MILLI, Machine, NANO, SECOND, machine};
use crate::cases::check;
use crate::source::bounded::{Bounds, ClockStatus, GROWTH, Limits};

fn steps() -> impl Strategy<Value = Vec<(i64, i64, u128)>> {
    let step = prop_oneof![any::<i64>().prop_map(|nanos| nanos >> 8), -10_000_000..10_000_000_i64];
    vec((step, -250_000..=250_000_i64, 0..1500_u128), 1..8)
}

#[test]
fn a_step_is_within_the_wall_bound_at_once_and_seen_after_resync() {
    check(150, &(machine(), steps()), |(machine, steps)| {
        let witness = Witness::new(Machine { interrupts: 0, ..machine });
        for (nanos, _, millis) in steps {
            witness.watch(millis % 40 * MILLI + u128::from(witness.world.random(1_000_000_000)));
            // Also while the next segment is made and the old one is in force.
            if nanos % 2 == 0 {
                witness.world.pass(witness.left().saturating_sub(10 * MICRO));
                witness.read();
            }
            witness.world.step(nanos);
            let bound = witness.clock.realtime_error_bound().unwrap() as i64;
            let before = witness.world.wall();
            let now = witness.wall(witness.clock.realtime_ordered()).unwrap();
            assert!((before - bound..=witness.world.wall() + bound).contains(&now), "{now}, {bound}");
            let monotonic = witness.read();
            assert!(witness.clock.resync());
            assert!(witness.clock.error_bound() < 20_000, "{:?}", witness.clock.state());
            witness.read_wall();
            assert!(witness.read() >= monotonic);
        }
        true
    });
}

/// Also if interrupts come between the reads.
#[test]
fn resync_finds_the_middle_of_the_possible_offsets() {
    check(150, &machine(), |machine| {
        let witness = Witness::new(Machine { interrupts: machine.interrupts.min(3_000), ..machine });
        for _ in 0..20 {
            witness.watch(2 * CALIBRATION);
            assert!(witness.clock.resync());
            let expected = witness.world.wall() - witness.world.kernel() as i64;
            let offset = witness.world.foresee(0, || witness.clock.offset().unwrap());
            assert!(offset.abs_diff(expected) <= 12, "off by {} ns", offset - expected);
        }
        true
    });
}

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

    /// The width of the limits and the status.
    #[track_caller]
    fn look(&self) -> (u64, ClockStatus) {
        let before = self.witness.world.truth();
        let Limits { times: [earliest, latest], status } =
            self.bounds.limits(&self.witness.clock, self.drift).unwrap();
        let after = self.witness.world.truth();
        assert!(earliest <= after && before <= latest, "{status:?}: {earliest} {before} {after} {latest}");
        assert_eq!(status.is_bounded(), latest.abs_diff(earliest) < u64::MAX);
        (latest.abs_diff(earliest), status)
    }

    /// The same when the kernel must have been asked again.
    #[track_caller]
    fn look_later(&self) -> (u64, ClockStatus) {
        self.witness.world.pass(SECOND);
        self.witness.tolerate(true, SEGMENT + 2 * CALIBRATION);
        self.look()
    }
}

const NTP: u32 = GROWTH as u32;

fn status(is_synchronized: bool) -> ClockStatus {
    if is_synchronized { ClockStatus::Synchronized } else { ClockStatus::FreeRunning }
}

#[test]
fn the_true_time_is_within_the_limits_also_if_the_wall_clock_is_set_and_slewed() {
    let cases = (machine(), steps(), prop::sample::select(&[NTP / 2, NTP][..]));
    check(60, &cases, |(machine, steps, drift)| {
        let witness = Witness::new(machine);
        let (world, observer) = (&witness.world, Observer::new(&witness, drift));
        for (turn, (nanos, ppb, millis)) in steps.into_iter().enumerate() {
            for _ in 0..10 {
                observer.look();
                witness.tolerate(true, millis * MILLI / 10);
            }
            // Even if the clock is set right, or wrong, just after the kernel was asked.
            let step = if turn % 3 == 0 { world.truth() - world.wall() } else { nanos };
            world.step(step);
            observer.look();
            world.set_slew(ppb);
            let is_synchronized = turn % 2 == 0;
            world.state_truly(is_synchronized);
            let (width, status_then) = observer.look_later();
            if machine.interrupts == 0 && world.wall().abs_diff(world.truth()) < 15_000_000_000 {
                let error = world.wall().abs_diff(world.truth());
                assert!(width <= 2 * error + 6_000_000, "{width} ns of limits for an error of {error} ns");
                assert_eq!(status_then, status(is_synchronized));
            }
        }
        true
    });
}

/// The kernel adds 500 us a second to `maxerror`, so that a program's 1 ms is 33 ms a minute later.
#[test]
fn the_bound_grows_by_the_drift_that_was_chosen() {
    check(20, &machine(), |machine| {
        let machine = Machine { interrupts: 0, hertz: machine.hertz.max(20_000_000), ..machine };
        let witness = Witness::new(machine);
        let observers = [0, 50_000, NTP].map(|drift| Observer::new(&witness, drift));
        witness.world.step(witness.world.truth() - witness.world.wall());
        witness.world.state_truly(true);
        let look = || {
            witness.watch(2 * CALIBRATION);
            observers.each_ref().map(|observer| observer.look().0)
        };
        let first = look();
        witness.world.pass(60 * SECOND);
        let last = look();
        for ((first, last), drift) in first.into_iter().zip(last).zip([0, 50_000, 500_000_u64]) {
            let expected = 2 * 60 * drift;
            assert!(last.abs_diff(first + expected) < 40_000, "{first} {last} {drift}");
        }
        // The first call comes a minute after a statement: then it is the kernel's growth.
        let late = Observer::new(&witness, 0).look().0;
        assert!(late.abs_diff(last[2]) < 1_100_000, "{late} {last:?}");
        true
    });
}

#[test]
fn what_the_kernel_has_yet_to_correct_counts_and_a_stated_0_is_no_bound() {
    check(50, &(machine(), -400_000_000..400_000_000_i64, 0..3_u64), |(machine, error, known)| {
        let witness = Witness::new(Machine { interrupts: 0, ..machine });
        let (world, observer) = (&witness.world, Observer::new(&witness, NTP));
        world.step(world.truth() - world.wall() + error);
        // At most a quarter of the correction is under way.
        world.state(known, error.unsigned_abs() * 3 / 4, true);
        let expected = if known == 0 { ClockStatus::Unknown } else { ClockStatus::Synchronized };
        for _ in 0..5 {
            assert_eq!(observer.look_later().1, expected);
        }
        world.pass(40_000 * SECOND);
        assert_eq!(observer.look().1, ClockStatus::Unknown, "16 s is no bound, either");
        true
    });
}

/// The kernel adds to `maxerror` at the end of each second, so it can lack the drift of one.
#[test]
fn the_drift_of_a_second_is_added_before_the_kernel_adds_it() {
    check(50, &(machine(), any::<bool>()), |(machine, is_fast)| {
        let witness = Witness::new(Machine { interrupts: 0, ..machine });
        let (world, observer) = (&witness.world, Observer::new(&witness, NTP / 2));
        world.step(world.truth() - world.wall());
        world.pass(SECOND - u128::from(world.kernel()) % 1_000_000_000 * NANO);
        world.state(world.wall().abs_diff(world.truth()) / 1000 + 1, 0, true);
        world.set_slew(if is_fast { 250_000 } else { -250_000 });
        world.pass(990 * MILLI);
        assert_eq!(observer.look().1, ClockStatus::Synchronized);
        true
    });
}

/// A statement can look like what the kernel adds: the same estimate, and some times 500 us more.
#[test]
fn a_larger_error_counts_also_if_it_looks_like_the_kernels() {
    check(50, &(machine(), 1_000..1_000_000_u64), |(machine, more)| {
        let machine = Machine { interrupts: 0, seed: machine.seed & !1, ..machine };
        let witness = Witness::new(machine);
        let (world, observer) = (&witness.world, Observer::new(&witness, 0));
        world.step(world.truth() - world.wall());
        world.state(1_001, 0, true);
        observer.look_later();
        // The hypervisor stops the machine and does not say so, but the daemon sees it.
        world.freeze(u128::from(more) * MICRO);
        world.state((world.wall().abs_diff(world.truth()) / 1000).next_multiple_of(500) + 1_001, 0, true);
        assert!(observer.look_later().1.is_bounded());
        true
    });
}

/// A restored or moved machine, and a suspended one, whose kernel takes the time from a clock chip.
#[test]
fn a_disrupted_clock_has_no_bound_until_an_error_is_stated() {
    let cases = (machine(), any::<[bool; 3]>(), 2_000..10_000_000_000_u64);
    check(60, &cases, |(machine, [is_suspend, comes_late, is_synchronized], error)| {
        let witness = Witness::new(Machine { interrupts: 0, ..machine });
        let (world, observer) = (&witness.world, Observer::new(&witness, NTP));
        world.step(world.truth() - world.wall());
        world.state_truly(true);
        if !comes_late || is_suspend {
            assert_eq!(observer.look_later().1, ClockStatus::Synchronized);
        }
        for _ in 0..3 {
            // The kernel's clock is wrong then, and it does not know it.
            if is_suspend {
                world.suspend(2 * SECOND, false);
                world.shift(error as i64);
                witness.tolerate(true, SEGMENT + 2 * CALIBRATION);
            } else {
                world.restore(u128::from(error) * NANO);
            }
            for _ in 0..3 {
                assert_eq!(observer.look().1, ClockStatus::Disrupted);
                assert_eq!(observer.look_later().1, ClockStatus::Disrupted);
            }
            world.state_truly(is_synchronized);
            assert_eq!(observer.look_later().1, status(is_synchronized));
            world.step(world.truth() - world.wall());
            world.state_truly(true);
            assert_eq!(observer.look_later().1, ClockStatus::Synchronized);
        }
        true
    });
}

#[test]
fn a_machine_that_is_moved_during_a_call_has_no_wrong_limits() {
    check(20, &(machine(), any::<bool>()), |(machine, is_asked)| {
        let mut seen = [0; 2];
        for at in 1..40 {
            let witness = Witness::new(Machine { interrupts: 0, ..machine });
            let (world, observer) = (&witness.world, Observer::new(&witness, NTP));
            world.step(world.truth() - world.wall());
            world.state_truly(true);
            observer.look_later();
            // No segment is in force: so the kernel's clock is read.
            world.pass(if is_asked { SECOND } else { 100 * MILLI });
            world.restored_at.set(world.kernel_reads.get() + at);
            let (_, status) = observer.look();
            if world.marker.get() > 0 {
                seen[usize::from(status == ClockStatus::Disrupted)] += 1;
                assert_eq!(observer.look().1, ClockStatus::Disrupted);
            }
        }
        seen[1] > 0
    });
}

#[test]
fn the_kernel_is_asked_for_its_error_once_a_second_and_after_a_step() {
    let step = prop_oneof![2_000..1_000_000_000_i64, -1_000_000_000..-2_000_i64];
    check(50, &(machine(), step), |(machine, step)| {
        let witness =
            Witness::new(Machine { hertz: machine.hertz.max(20_000_000), interrupts: 0, ..machine });
        let (world, observer) = (&witness.world, Observer::new(&witness, NTP));
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
        true
    });
}

#[test]
fn a_denied_clock_or_forbidden_system_calls_give_no_limits() {
    check(20, &machine(), |machine| {
        let (witness, bounds) = (Witness::new(Machine { interrupts: 0, ..machine }), Bounds::new());
        let limits = || bounds.limits(&witness.clock, NTP);
        witness.world.is_denied.set(true);
        assert_eq!(limits(), Err(Errno::EPERM));
        witness.world.is_denied.set(false);
        assert!(limits().is_ok());
        witness.clock.forbid_system_calls();
        assert!(limits().is_ok(), "the last answer is kept for a second");
        witness.world.pass(SECOND);
        assert_eq!(limits(), Err(Errno::EPERM));
        true
    });
}
