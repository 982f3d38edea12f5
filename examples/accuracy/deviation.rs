//! The counter clock between two reads of the kernel's: how far from their middle it is.

use std::fmt;
use std::time::Duration;

use vdso_time::{ClockId, counter};

use super::measured::nanos;

/// Deviations up to this, in nanoseconds, are counted each for itself.
const FINE: usize = 10_000;
/// Columns of the plot.
pub(crate) const BUCKETS: usize = 600;

/// How many reads were how far off.
struct Histogram {
    counts: Vec<u64>,
    largest: u64,
}

impl Histogram {
    fn new() -> Self {
        Self { counts: vec![0; FINE + 1], largest: 0 }
    }

    fn add(&mut self, deviation: i64) {
        let size = deviation.unsigned_abs();
        self.counts[usize::try_from(size).map_or(FINE, |size| size.min(FINE))] += 1;
        self.largest = self.largest.max(size);
    }

    fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The size that this many of a thousand reads do not exceed.
    fn permille(&self, share: u64) -> u64 {
        let mut left = self.total() * share / 1000;
        for (size, count) in self.counts.iter().enumerate() {
            if left <= *count {
                return if size == FINE { self.largest } else { size as u64 };
            }
            left -= count;
        }
        self.largest
    }
}

impl fmt::Display for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [p50, p99, p999] = [500, 990, 999].map(|share| self.permille(share));
        write!(f, "{p50:>6} {p99:>6} {p999:>6} {:>6} {:>10}", self.largest, self.total())
    }
}

/// The least and the greatest deviation in a part of the time.
#[derive(Clone, Copy)]
pub(crate) struct Bucket {
    pub(crate) least: i64,
    pub(crate) greatest: i64,
}

/// What was seen.
pub(crate) struct Deviation {
    monotonic: Histogram,
    realtime: Histogram,
    back: u64,
    wide: u64,
    pub(crate) buckets: Vec<Option<Bucket>>,
    first: (i64, i64),
    last: (i64, i64),
}

impl fmt::Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let interrupted = self.wide;
        writeln!(f, "deviation from the kernel's clock, without {interrupted} reads that were interrupted")?;
        writeln!(f, "ns               p50    p99  p99.9    max   of reads")?;
        writeln!(f, "MONOTONIC     {}", self.monotonic)?;
        writeln!(f, "REALTIME      {}", self.realtime)?;
        writeln!(f, "backward steps {}", self.back)?;
        writeln!(f, "rate over the whole: {:+.2} ppb of the kernel's", self.rate_error())
    }
}

impl Deviation {
    pub(crate) fn measure(length: Duration) -> Self {
        let width = (0..1000).map(|_| probe(ClockId::MONOTONIC, counter::monotonic_ordered).1).min();
        // What takes half as long again, and three ticks, was interrupted and says nothing.
        let tick = 1_000_000_000 / counter::frequency().unwrap_or(1_000_000_000).max(1);
        let limit = width.unwrap_or(0) * 3 / 2 + 3 * tick as i64;
        let mut seen = Self {
            monotonic: Histogram::new(),
            realtime: Histogram::new(),
            back: 0,
            wide: 0,
            buckets: vec![None; BUCKETS],
            first: (0, 0),
            last: (0, 0),
        };
        let length = length.as_nanos() as i64;
        let start = nanos(ClockId::MONOTONIC);
        let mut latest = 0;
        loop {
            let (deviation, width, read) = probe(ClockId::MONOTONIC, counter::monotonic_ordered);
            seen.back += u64::from(read < latest);
            latest = read;
            let passed = read - start;
            if passed >= length {
                return seen;
            }
            if width > limit {
                seen.wide += 1;
                continue;
            }
            seen.monotonic.add(deviation);
            seen.last = (passed, deviation);
            if seen.first == (0, 0) {
                seen.first = seen.last;
            }
            let column = (passed.max(0) as u128 * BUCKETS as u128 / length as u128) as usize;
            let bucket = &mut seen.buckets[column.min(BUCKETS - 1)];
            let Bucket { least, greatest } =
                bucket.unwrap_or(Bucket { least: deviation, greatest: deviation });
            *bucket = Some(Bucket { least: least.min(deviation), greatest: greatest.max(deviation) });

            let (deviation, width, _) = probe(ClockId::REALTIME, || counter::realtime() as u64);
            if width <= limit {
                seen.realtime.add(deviation);
            }
        }
    }

    /// Parts in 10^9 by which the counter clock was faster, from the first read to the last.
    fn rate_error(&self) -> f64 {
        (self.last.1 - self.first.1) as f64 / (self.last.0 - self.first.0) as f64 * 1e9
    }
}

/// A read between two of the kernel's clock: how far it is from their middle, how far these are apart, and itself.
fn probe(clock: ClockId, read: impl Fn() -> u64) -> (i64, i64, i64) {
    let before = nanos(clock);
    let now = read() as i64;
    let after = nanos(clock);
    (now - (before + (after - before) / 2), after - before, now)
}
