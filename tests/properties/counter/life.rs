//! Whatever happens to a machine: the time never goes back, is as true as the clock says, and is so again soon after.

use std::cell::RefCell;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::cases::check;
use crate::status::Status;
use crate::witness::Witness;
use crate::world::{MICRO, MILLI, Machine, NANO, SECOND};

/// What happens to a machine.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// Reads, with up to so many nanoseconds in between.
    Reads(u16, u64),
    /// Nobody reads for so many microseconds.
    Idle(u64),
    /// NTP makes the kernel's clock faster or slower by up to 250 ppm.
    Discipline(i64),
    /// For so many milliseconds; and whether the counter begins anew.
    Suspend(u64, bool),
    /// The virtual machine goes on where the counter has so many hundredths of the rate that it had in the beginning.
    Migrate(u64),
    /// The wall clock is set, by nanoseconds.
    Step(i64),
}

/// From 1 MHz to 10 GHz.
pub(crate) fn hertz() -> impl Strategy<Value = u64> {
    prop_oneof![
        (6.0..10.0_f64).prop_map(|digits| 10_f64.powf(digits) as u64),
        prop::sample::select(vec![
            1_000_000,
            19_200_000,
            24_000_000,
            1_000_000_000,
            2_100_000_000,
            3_000_000_000
        ]),
    ]
}

/// Machines whose CPUs agree.
pub(crate) fn machine() -> impl Strategy<Value = Machine> {
    let ticks = prop_oneof![Just(0), any::<u64>(), (0..100_000_000_u64).prop_map(|left| u64::MAX - left)];
    let interrupts = prop_oneof![Just(0), Just(300), Just(3_000), Just(30_000)];
    (hertz(), ticks, any::<bool>(), interrupts, any::<u64>()).prop_map(
        |(hertz, ticks, is_stated, interrupts, seed)| Machine {
            hertz,
            ticks,
            stated: is_stated.then_some(hertz),
            skew: 0,
            interrupts,
            seed,
        },
    )
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => (1..400_u16, 1..200_000_u64).prop_map(|(reads, gap)| Event::Reads(reads, gap)),
        4 => prop_oneof![1..40_000_u64, 1..10_000_000_u64, 1..100_000_000_000_u64].prop_map(Event::Idle),
        4 => (-250_000..=250_000_i64).prop_map(Event::Discipline),
        1 => (prop_oneof![1..100_u64, 1..100_000_000_u64], any::<bool>()).prop_map(|(millis, anew)| Event::Suspend(millis, anew)),
        1 => (50..=200_u64).prop_map(Event::Migrate),
        1 => any::<i32>().prop_map(|nanos| Event::Step(nanos.into())),
    ]
}

/// A line's end, by a counter that is four times as slow as before, and two calibrations: one may have been under way, and is
/// spoilt.
const SETTLED: u128 = (4 * 16 + 16 + 2 * 12) * MILLI;

/// The longest line, by a counter that is four times as slow as before.
const LINE: u128 = 4 * 17 * MILLI;

/// What happens, and what must hold then. Says whether the counter was used.
fn live(machine: Machine, events: &[Event], errors: &RefCell<Vec<u64>>) -> bool {
    let witness = Witness::new(machine);
    let world = &witness.world;
    for &event in events {
        match event {
            Event::Reads(reads, gap) => {
                for _ in 0..reads {
                    witness.read();
                    world.pass(u128::from(world.random(gap)) * NANO);
                }
            }
            Event::Idle(micros) => world.pass(u128::from(micros) * MICRO),
            Event::Discipline(ppb) => {
                // The bound allows for one change in a line.
                witness.watch(17 * MILLI);
                world.discipline(ppb);
            }
            Event::Suspend(..) | Event::Migrate(_) => {
                let is_measured = matches!(witness.status(), Status::Used | Status::Stale);
                witness.is_calm.set(false);
                match event {
                    Event::Suspend(millis, anew) => world.suspend(u128::from(millis) * MILLI, anew),
                    Event::Migrate(hundredths) => {
                        world.migrate((machine.hertz / 100 * hundredths).max(1_000_000));
                    }
                    _ => {}
                }
                // The clock sees it when the line ends. A calibration that it spoils makes one wrong line.
                witness.watch(if is_measured { LINE } else { SETTLED });
                witness.is_calm.set(true);
                witness.watch(SETTLED);
            }
            Event::Step(nanos) => world.step(nanos),
        }
    }
    witness.watch(SETTLED);
    witness.watch(MILLI);
    assert_eq!(witness.settled(), Status::Used, "in the end");
    errors.borrow_mut().append(&mut witness.errors.borrow_mut());
    true
}

fn print(what: &str, errors: &mut [u64]) {
    errors.sort_unstable();
    let at = |mille: usize| errors.get(errors.len() * mille / 1000).copied().unwrap_or_default();
    println!(
        "{what}: {} reads by the counter, off by {} ns (half), {} ns (p99), {} ns (p99.9), {} ns (all)",
        errors.len(),
        at(500),
        at(990),
        at(999),
        errors.last().unwrap_or(&0)
    );
}

#[test]
fn it_never_goes_back_and_is_as_true_as_it_says() {
    let errors = RefCell::<Vec<u64>>::default();
    let cases = (machine(), vec(event(), 1..12));
    check(3_000, &cases, |(machine, events)| live(machine, &events, &errors));
    print("whatever happens", &mut errors.borrow_mut());
}

/// Where nothing happens it is as true as a line can be.
#[test]
fn a_clock_that_keeps_its_rate_is_followed_closely() {
    let errors = RefCell::<Vec<u64>>::default();
    let machine = machine().prop_filter("fine ticks", |machine| machine.hertz >= 100_000_000);
    let cases = (machine, -500_000..=500_000_i64);
    check(300, &cases, |(machine, ppb)| {
        let witness = Witness::new(machine);
        witness.world.discipline(ppb);
        witness.watch(SECOND / 4);
        witness.errors.borrow_mut().clear();
        witness.watch(SECOND / 2);
        assert_eq!(witness.settled(), Status::Used);
        errors.borrow_mut().append(&mut witness.errors.borrow_mut());
        true
    });
    let mut errors = errors.borrow_mut();
    print("a steady clock, from 100 MHz to 10 GHz", &mut errors);
    let p99 = errors[errors.len() / 100 * 99];
    assert!(p99 <= 30, "{p99} ns");
}

/// A line that is renewed in its last moment, when the kernel's clock just became slower or faster.
#[test]
fn the_end_of_a_line_is_not_a_step() {
    let errors = RefCell::<Vec<u64>>::default();
    let cases = (machine(), vec((-250_000..=250_000_i64, 0..4_000_u64, 1..400_u64), 1..20));
    check(1_000, &cases, |(machine, ends)| {
        let witness = Witness::new(machine);
        for (ppb, before, gap) in ends {
            witness.watch(32 * MILLI);
            witness.world.discipline(ppb);
            witness.world.pass(witness.left().saturating_sub(u128::from(before) * NANO));
            for _ in 0..100 {
                witness.read();
                witness.world.pass(u128::from(gap) * NANO);
            }
        }
        errors.borrow_mut().append(&mut witness.errors.borrow_mut());
        true
    });
    print("at the end of lines", &mut errors.borrow_mut());
}

/// A tick that is as long as a read, or longer, is not a reason to ask the kernel again.
#[test]
fn an_undisturbed_clock_is_not_suspect() {
    let machine = machine().prop_map(|machine| Machine { interrupts: 0, ..machine });
    check(200, &machine, |machine| {
        let witness = Witness::new(machine);
        witness.watch(SECOND);
        assert_eq!((witness.settled(), witness.world.verdicts.get()), (Status::Used, 1));
        true
    });
}

/// A short sleep in a long pause looks like a change of the rate: it is believed if NTP may have made it, and then the bound holds.
#[test]
fn a_suspend_in_a_long_pause_is_within_the_bound() {
    let errors = RefCell::<Vec<u64>>::default();
    let share = prop_oneof![0..500_000_u128, 500_000..2_000_000_u128];
    check(500, &(machine(), 1..4_000_u128, share), |(machine, seconds, ppb)| {
        let witness = Witness::new(machine);
        witness.watch(100 * MILLI);
        assert_eq!(witness.settled(), Status::Used);
        witness.world.pass(seconds * SECOND);
        witness.world.suspend(seconds * SECOND * ppb / 1_000_000_000, false);
        witness.watch(100 * MILLI);
        errors.borrow_mut().append(&mut witness.errors.borrow_mut());
        true
    });
    print("a suspend in a long pause", &mut errors.borrow_mut());
}
