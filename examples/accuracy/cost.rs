//! What the call costs that makes a new line, and what a second thread costs that reads as well.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;

use vdso_time::{ClockId, counter};

use super::measured::nanos;

/// More than a line lasts.
const PAUSE: i64 = 17_000_000;
/// Calls that make a line.
const RENEWALS: usize = 100;
/// Batches of a thread, and reads of a batch.
const BATCHES: usize = 2000;
const READS: u64 = 1000;

pub(crate) fn report() {
    let timed = median((0..100_000).map(|_| ticks_of(|| nanos(ClockId::MONOTONIC))).collect());
    let renewals = (0..RENEWALS).map(|_| {
        let start = nanos(ClockId::MONOTONIC);
        while nanos(ClockId::MONOTONIC) - start < PAUSE {}
        ticks_of(|| counter::monotonic() as i64)
    });
    let renewing = median(renewals.collect());
    let ratio = renewing as f64 / timed as f64;
    println!(
        "a call that makes a line: {ratio:.1} x a timed vDSO call ({renewing} and {timed} ticks, medians)"
    );
    let (one, two) = (fastest_batch(1), fastest_batch(2));
    println!("two threads that read at once: {:.3} x one ({two:.2} and {one:.2} ns a read)", two / one);
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values[values.len() / 2]
}

fn ticks_of(call: impl Fn() -> i64) -> u64 {
    let start = counter::ticks_ordered();
    black_box(call());
    counter::ticks_ordered() - start
}

/// The nanoseconds of a read in the fastest batch, by the slowest of so many threads.
fn fastest_batch(threads: usize) -> f64 {
    let start = Barrier::new(threads);
    let work = || {
        start.wait();
        let batch = |_| {
            let start = nanos(ClockId::MONOTONIC);
            for _ in 0..READS {
                black_box(counter::monotonic());
            }
            nanos(ClockId::MONOTONIC) - start
        };
        (0..BATCHES).map(batch).min().unwrap_or(0)
    };
    let slowest = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().filter_map(|worker| worker.join().ok()).max()
    });
    slowest.unwrap_or(0) as f64 / READS as f64
}
