//! How far the counter clocks go from `CLOCK_MONOTONIC`, all beside each other, and whether they step back.

use std::time::Duration;

use vdso_time::{ClockId, clock_gettime, counter};
use vdso_time_benches::harness::report::Table;

use crate::rows::quanta_clock;

/// A clock, whose nanoseconds count from anywhere.
struct Clock {
    name: &'static str,
    read: Box<dyn Fn() -> i64>,
    /// Its time less the kernel's, at the first read.
    offset: Option<i64>,
    latest: i64,
    back: u64,
    /// How long a read between two of the kernel's takes at least.
    quickest: i64,
    /// How many reads were so many nanoseconds off; see [`bucket`].
    counts: Vec<u64>,
    largest: u64,
}

/// Deviations below this are counted each for itself, larger ones in steps of 1024 ns.
const FINE: usize = 1 << 16;
const STEP: usize = 1 << 10;
const BUCKETS: usize = FINE + (1 << 18);

fn bucket(nanos: usize) -> usize {
    if nanos < FINE { nanos } else { (FINE + (nanos - FINE) / STEP).min(BUCKETS - 1) }
}

/// The largest deviation of a bucket.
fn largest(bucket: usize) -> usize {
    if bucket < FINE { bucket } else { FINE + (bucket - FINE + 1) * STEP - 1 }
}

fn clocks() -> Vec<Clock> {
    let clock = |name, read: Box<dyn Fn() -> i64>| Clock {
        name,
        read,
        offset: None,
        latest: i64::MIN,
        back: 0,
        quickest: i64::MAX,
        counts: vec![0; BUCKETS],
        largest: 0,
    };
    let quanta = quanta_clock();
    let zero = quanta.now();
    let (minstant, fastant) = (minstant::Instant::now(), fastant::Instant::now());
    let nanos = |time: Duration| time.as_nanos() as i64;
    vec![
        clock("vdso-time", Box::new(|| counter::monotonic_ordered() as i64)),
        clock("quanta", Box::new(move || nanos(quanta.now().duration_since(zero)))),
        clock("minstant", Box::new(move || nanos(minstant::Instant::now().duration_since(minstant)))),
        clock("fastant", Box::new(move || nanos(fastant::Instant::now().duration_since(fastant)))),
    ]
}

fn kernel() -> Option<i64> {
    let now = clock_gettime(ClockId::MONOTONIC).ok()?;
    Some(now.tv_sec * 1_000_000_000 + now.tv_nsec)
}

/// Reads until the counter is used, or will not be.
pub fn settle() {
    let start = std::time::Instant::now();
    while counter::status() != counter::Status::Used && start.elapsed() < Duration::from_millis(200) {
        let _ = counter::monotonic();
    }
}

impl Clock {
    /// A read between two of the kernel's: how far it is from their middle, and how far these are apart.
    fn probe(&mut self) -> Option<(i64, i64)> {
        let before = kernel()?;
        let now = (self.read)();
        let after = kernel()?;
        self.back += u64::from(now < self.latest);
        self.latest = now;
        Some((now - (before + (after - before) / 2), after - before))
    }

    fn compare(&mut self) -> Option<()> {
        let (difference, width) = self.probe()?;
        // What takes half as long again as the quickest was interrupted, and says nothing.
        if width * 2 <= self.quickest * 3 {
            let size = (difference - *self.offset.get_or_insert(difference)).unsigned_abs();
            self.counts[bucket(size as usize)] += 1;
            self.largest = self.largest.max(size);
        }
        Some(())
    }
}

/// Reads each clock between two reads of the kernel's, for so long.
pub fn measure(length: Duration) -> Option<Table> {
    settle();
    let mut clocks = clocks();
    for clock in &mut clocks {
        for _ in 0..1000 {
            clock.quickest = clock.quickest.min(clock.probe()?.1);
        }
    }
    let start = kernel()?;
    while kernel()? - start < length.as_nanos() as i64 {
        for clock in &mut clocks {
            clock.compare()?;
        }
    }
    let rows = clocks.iter().map(row).collect();
    let head = ["clock", "p50, ns", "p99, ns", "p99.9, ns", "most, ns", "steps back", "reads"];
    Some(Table { name: "peers-deviation", head: head.map(str::to_string).to_vec(), rows })
}

/// The deviation that this many of a thousand reads do not exceed.
fn permille(clock: &Clock, total: u64, share: u64) -> u64 {
    let mut left = total * share / 1000;
    for (bucket, count) in clock.counts.iter().enumerate() {
        if left <= *count {
            return clock.largest.min(largest(bucket) as u64);
        }
        left -= count;
    }
    clock.largest
}

fn row(clock: &Clock) -> Vec<String> {
    let total = clock.counts.iter().sum();
    let mut cells = vec![clock.name.to_string()];
    cells.extend([500, 990, 999].map(|share| permille(clock, total, share).to_string()));
    cells.extend([clock.largest, clock.back, total].map(|number| number.to_string()));
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_what_it_says() {
        for nanos in [0, 1, FINE - 1, FINE, FINE + 1, FINE + STEP - 1, FINE + STEP, 3_538_260] {
            let most = largest(bucket(nanos));
            assert!((nanos..nanos + STEP).contains(&most), "{nanos}: {most}");
            assert_eq!(bucket(most), bucket(nanos));
            assert_eq!(bucket(most + 1), bucket(nanos) + 1);
        }
        assert_eq!(bucket(usize::MAX), BUCKETS - 1);
    }
}
