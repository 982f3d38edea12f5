//! What the call costs that makes a new line, and what a second thread costs that reads as well.

use std::hint::black_box;
use std::io::{self, Write};
use std::sync::Barrier;
use std::thread;

use vdso_time::{ClockId, counter};

use super::measured::nanos;

/// How long to look for calls that make a line.
const WATCHED: i64 = 3_000_000_000;
/// Batches of a thread, and reads of a batch.
const BATCHES: usize = 2000;
const READS: u64 = 1000;

pub(crate) fn report(out: &mut impl Write) -> io::Result<()> {
    let timed = median((0..100_000).map(|_| ticks_of(|| nanos(ClockId::MONOTONIC))).collect());
    // A call that makes a line reads the one clock twice and the other once; what takes much longer was interrupted, or was suspect.
    let range = timed * 5 / 2..timed * 10;
    let start = nanos(ClockId::MONOTONIC);
    let mut renewals = Vec::new();
    while nanos(ClockId::MONOTONIC) - start < WATCHED {
        for _ in 0..1000 {
            renewals
                .extend(Some(ticks_of(|| counter::monotonic() as i64)).filter(|ticks| range.contains(ticks)));
        }
    }
    let calls = renewals.len();
    if calls > 0 {
        let median = median(renewals);
        writeln!(
            out,
            "a call that makes a line: {:.1} x a timed vDSO call ({median} and {timed} ticks, medians; {calls} such in 3 s)",
            median as f64 / timed as f64
        )?;
    }
    let (one, two) = (fastest_batch(1), fastest_batch(2));
    writeln!(out, "two threads that read at once: {:.3} x one ({two:.2} and {one:.2} ns a read)", two / one)
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
