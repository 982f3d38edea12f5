//! Clocks and counters that return anything.

use std::cell::Cell;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::cases::check;
use crate::engine::clock::CounterClock;
use crate::engine::source::{Keeper, Source};
use crate::engine::status::Unavailable;

/// A trusted source that answers everything by one function.
struct Numbers<F>(F);

impl<F: Fn() -> u64> Source for Numbers<F> {
    fn ticks(&self) -> u64 {
        (self.0)()
    }

    fn ticks_ordered(&self) -> u64 {
        (self.0)()
    }

    fn monotonic(&self) -> Option<u64> {
        Some((self.0)())
    }

    fn realtime(&self) -> Option<i64> {
        Some((self.0)() as i64)
    }

    fn raw(&self) -> Option<i64> {
        Some((self.0)() as i64)
    }

    fn detect(&self, _: bool) -> Result<Keeper, Unavailable> {
        Ok(Keeper::Kernel)
    }
}

/// Reads a source that returns these numbers in turn, larger by `growth` in each turn.
#[test]
fn no_sequence_of_numbers_makes_the_clock_panic() {
    let number = prop_oneof![
        any::<u64>(),
        0..1_000_000_u64,
        (0..64_u32).prop_map(|bit| 1 << bit),
        (0..64_u32).prop_map(|bit| u64::MAX << bit),
    ];
    let growth = prop_oneof![Just(0), 0..10_000_000_u64, any::<u64>()];
    check(
        20_000,
        &(vec(number, 1..100), growth, 1..300_usize),
        |(numbers, growth, reads)| {
            let turn = Cell::new(0);
            let next = || {
                let round = turn.get() / numbers.len();
                let number = numbers[turn.get() % numbers.len()];
                turn.set(turn.get() + 1);
                number.wrapping_add(growth.wrapping_mul(round as u64))
            };
            let clock = CounterClock::new(Numbers(next));
            for _ in 0..reads {
                let _ = clock
                    .monotonic(Source::ticks)
                    .or_else(|| clock.slow_monotonic());
                if clock.realtime(Source::ticks_ordered).is_none() {
                    let _ = clock.slow_realtime();
                }
                let _ = (clock.state(), clock.nanos_of(next()), clock.check());
            }
            true
        },
    );
}
