//! Clocks and counters that say anything: a clock made of them has no truth to tell, but it ends each read, and never panics.

use std::cell::Cell;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::cases::check;
use crate::clock::CounterClock;
use crate::sample::Source;
use crate::segment;
use crate::status::Status;

/// Says these numbers, one after the other, again and again.
struct Liar {
    numbers: Vec<u64>,
    next: Cell<usize>,
    /// Each time it goes round, they grow by this.
    grow: u64,
    grown: Cell<u64>,
}

impl Liar {
    fn say(&self) -> u64 {
        let at = self.next.get();
        if at + 1 == self.numbers.len() {
            self.grown.set(self.grown.get().wrapping_add(self.grow));
        }
        self.next.set((at + 1) % self.numbers.len());
        self.numbers[at].wrapping_add(self.grown.get())
    }
}

impl Source for &Liar {
    fn ticks(&self) -> u64 {
        self.say()
    }

    fn ticks_ordered(&self) -> u64 {
        self.say()
    }

    fn monotonic(&self) -> Option<u64> {
        Some(self.say())
    }

    fn realtime(&self) -> Option<i64> {
        Some(self.say() as i64)
    }

    fn cpu(&self) -> Option<u32> {
        Some(self.say() as u32)
    }

    fn detect(&self) -> Result<(), Status> {
        Ok(())
    }

    fn stated_frequency(&self) -> Option<u64> {
        None
    }
}

#[test]
fn nothing_that_clocks_say_makes_it_panic() {
    let number = prop_oneof![
        any::<u64>(),
        0..1_000_000_u64,
        (0..64_u32).prop_map(|bit| 1 << bit),
        (0..64_u32).prop_map(|bit| u64::MAX << bit),
        (0..1_000_000_u64).prop_map(|less| (1 << 63) - less),
        1_000_000..100_000_000_u64,
    ];
    let grow = prop_oneof![Just(0), 0..10_000_000_u64, any::<u64>()];
    check(20_000, &(vec(number, 1..100), grow, 1..300_usize), |(numbers, grow, reads)| {
        let liar = Liar { numbers, next: Cell::new(0), grow, grown: Cell::new(0) };
        let clock = CounterClock::new(&liar);
        for _ in 0..reads {
            let _ = clock.monotonic(Source::ticks).or_else(|| clock.slow_monotonic());
            let _ = clock.realtime(Source::ticks_ordered).or_else(|| clock.slow_realtime());
            let _ = (clock.state(), clock.status(), clock.frequency(), clock.check());
        }
        true
    });
}

/// A clock that goes with its counter, but a little faster from read to read, or slower: never by so much that it were noticed.
struct Creeper {
    ticks: Cell<u64>,
    /// In 2^-64 ns.
    nanos: Cell<u128>,
    rate: Cell<f64>,
    factor: f64,
}

impl Creeper {
    fn say(&self) -> u64 {
        (self.nanos.get() >> 64) as u64
    }

    fn pass(&self, ticks: u32) {
        self.ticks.set(self.ticks.get().wrapping_add(ticks.into()));
        self.nanos.set(
            self.nanos.get().wrapping_add((f64::from(ticks) * self.rate.get() * 2_f64.powi(64)) as u128),
        );
    }
}

impl Source for &Creeper {
    fn ticks(&self) -> u64 {
        self.ticks.get()
    }

    fn ticks_ordered(&self) -> u64 {
        self.ticks.get()
    }

    fn monotonic(&self) -> Option<u64> {
        Some(self.say())
    }

    fn realtime(&self) -> Option<i64> {
        Some(self.say() as i64)
    }

    fn cpu(&self) -> Option<u32> {
        None
    }

    fn detect(&self) -> Result<(), Status> {
        Ok(())
    }

    fn stated_frequency(&self) -> Option<u64> {
        None
    }
}

/// The time never goes back, though the rate leaves what a counter can have.
#[test]
fn a_rate_may_creep_away() {
    for factor in [1.000_8, 1.0 / 1.000_8] {
        for (rate, steps) in [(1.0, 600_000), (500.0, 600_000), (0.05, 600_000)] {
            let creeper = Creeper { ticks: Cell::new(0), nanos: Cell::new(0), rate: Cell::new(rate), factor };
            let clock = CounterClock::new(&creeper);
            let mut latest = 0;
            // 64 steps to a line, and as many when the rate has crept away.
            let pace = 1 << ((16_000_000.0_f64 / rate).log2() as u32 - 6);
            for step in 0..steps {
                creeper.pass(pace);
                if step % 64 == 0 {
                    creeper.rate.set(creeper.rate.get() * creeper.factor);
                }
                let nanos = clock.monotonic(Source::ticks).or_else(|| clock.slow_monotonic()).unwrap();
                assert!(nanos >= latest, "{nanos} after {latest}, at {} ns a tick", creeper.rate.get());
                latest = nanos;
            }
        }
    }
}

#[test]
fn a_line_of_any_rate_has_a_tick() {
    for rate in (0..64).flat_map(|bit| [1 << bit, u64::MAX >> bit, 0]) {
        assert!(segment::span(rate).is_power_of_two());
    }
}
