//! Clocks and counters that return anything, or that threads share.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::cases::check;
use crate::source::clock::CounterClock;
use crate::source::source::Source;
use crate::source::status::Refusal;

/// A trusted source made of functions, which return the ticks and the nanoseconds.
struct Functions<T, N>(T, N);

impl<T: Fn() -> u64, N: Fn() -> u64> Source for Functions<T, N> {
    fn ticks(&self) -> u64 {
        (self.0)()
    }

    fn ticks_ordered(&self) -> u64 {
        (self.0)()
    }

    fn monotonic(&self) -> Option<u64> {
        Some((self.1)())
    }

    fn realtime(&self) -> Option<i64> {
        Some((self.1)() as i64)
    }

    fn raw(&self) -> Option<u64> {
        Some((self.1)())
    }

    fn detect(&self) -> Result<(), Refusal> {
        Ok(())
    }
}

/// A source that returns these numbers in turn, each time round larger by `growth`.
#[test]
fn no_sequence_of_numbers_makes_the_clock_panic() {
    let number = prop_oneof![
        any::<u64>(),
        0..1_000_000_u64,
        (0..64_u32).prop_map(|bit| 1 << bit),
        (0..64_u32).prop_map(|bit| u64::MAX << bit),
    ];
    let growth = prop_oneof![Just(0), 0..10_000_000_u64, any::<u64>()];
    check(20_000, &(vec(number, 1..100), growth, 1..300_usize), |(numbers, growth, reads)| {
        let turn = Cell::new(0);
        let next = || {
            let round = turn.get() / numbers.len();
            let number = numbers[turn.get() % numbers.len()];
            turn.set(turn.get() + 1);
            number.wrapping_add(growth.wrapping_mul(round as u64))
        };
        let clock = CounterClock::new(Functions(next, next));
        for _ in 0..reads {
            let _ = clock.monotonic(Source::ticks).or_else(|| clock.slow_monotonic());
            if clock.realtime(Source::ticks_ordered).is_none() {
                let _ = clock.slow_realtime();
            }
            let _ = (clock.state(), clock.nanos_of(next()), clock.check());
        }
        true
    });
}

/// The kernel's clock: 3 ticks a nanosecond, 240 ppm fast in one period and slow in the next.
fn kernel(ticks: u64) -> u64 {
    const PERIOD: u64 = 1 << 26;
    let rest = ticks % PERIOD;
    let wave = if ticks / PERIOD % 2 == 0 { rest } else { PERIOD - rest };
    1_000_000_000 + (ticks * 100_000 + wave * 24) / 300_000
}

#[test]
fn no_thread_reads_an_earlier_time_than_another_thread_read_before() {
    for pace in [40, 700, 20_000] {
        let (ticks, latest, used) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        // Each read advances the counter; one in 331 by a thousand times as much.
        let advance = || {
            let is_slow = ticks.load(Ordering::Relaxed) % 331 == 0;
            ticks.fetch_add(if is_slow { pace * 1000 } else { pace }, Ordering::SeqCst)
        };
        let clock = CounterClock::new(Functions(advance, || kernel(advance())));
        let read = || {
            for _ in 0..600_000 {
                let seen = latest.load(Ordering::SeqCst);
                let fast = clock.monotonic(Source::ticks_ordered);
                let nanos = fast.or_else(|| clock.slow_monotonic()).unwrap();
                assert!(nanos >= seen, "{nanos} after {seen}: back by {}", seen - nanos);
                latest.fetch_max(nanos, Ordering::SeqCst);
                used.fetch_add(fast.is_some().into(), Ordering::Relaxed);
            }
        };
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(read);
            }
        });
        let (used, segments) = (used.into_inner(), ticks.load(Ordering::Relaxed) >> 25);
        assert!(segments > 3 && used > 0, "{used} reads by the counter, {segments} segments");
    }
}
