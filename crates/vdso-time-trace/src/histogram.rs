//! [`Histogram`]: counts of numbers, to a quarter of a power of two.

use core::fmt;
use core::ops::RangeInclusive;
use core::sync::atomic::{AtomicU64, Ordering};

/// The buckets of a power of two, all of one width.
const PARTS: usize = 4;
const PART_BITS: u32 = PARTS.ilog2();

/// Each number below `PARTS` has a bucket, and each power of two from there has `PARTS`.
const BUCKETS: usize = (u64::BITS - PART_BITS + 1) as usize * PARTS;

/// Counts numbers of the whole of `u64` in buckets that are linear within a power of two.
///
/// A bucket is at most a quarter as wide as its first number.
pub struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    sum: AtomicU64,
}

impl Histogram {
    /// Creates an empty histogram.
    #[must_use]
    pub const fn new() -> Self {
        Self { buckets: [const { AtomicU64::new(0) }; BUCKETS], sum: AtomicU64::new(0) }
    }

    /// Counts a number.
    #[inline]
    pub fn record(&self, number: u64) {
        self.buckets[bucket(number)].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(number, Ordering::Relaxed);
    }

    /// Returns how many numbers were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts().sum()
    }

    /// Returns the exact sum of the numbers.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.sum.load(Ordering::Relaxed)
    }

    /// Returns the bucket of a quantile, the median's for `quantile(0.5)`; `None` without numbers.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "2^53 numbers and more need no exact rank")]
    pub fn quantile(&self, share: f64) -> Option<RangeInclusive<u64>> {
        let count = self.count();
        let rank = ((share * count as f64) as u64).min(count.checked_sub(1)?);
        let mut seen = 0;
        let is_it = |counted: u64| {
            seen += counted;
            seen > rank
        };
        self.counts().position(is_it).map(numbers)
    }

    /// Returns the buckets that have numbers, and how many each has.
    pub fn buckets(&self) -> impl Iterator<Item = (RangeInclusive<u64>, u64)> {
        self.counts().enumerate().filter(|(_, count)| *count > 0).map(|(at, count)| (numbers(at), count))
    }

    fn counts(&self) -> impl Iterator<Item = u64> {
        self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed))
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.buckets()).finish()
    }
}

/// Returns the bucket of a number.
fn bucket(number: u64) -> usize {
    let power = (number | 1).ilog2().saturating_sub(PART_BITS);
    power as usize * PARTS + (number >> power) as usize
}

/// Returns the numbers of a bucket.
fn numbers(bucket: usize) -> RangeInclusive<u64> {
    let power = (bucket / PARTS).saturating_sub(1);
    let first = ((bucket - power * PARTS) as u64) << power;
    first..=first + ((1 << power) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buckets_are_adjacent_and_cover_all_numbers() {
        let mut next = Some(0);
        for at in 0..BUCKETS {
            let numbers = numbers(at);
            assert_eq!(Some(*numbers.start()), next);
            assert_eq!((bucket(*numbers.start()), bucket(*numbers.end())), (at, at));
            assert!(numbers.end() - numbers.start() <= numbers.start() / PARTS as u64);
            next = numbers.end().checked_add(1);
        }
        assert_eq!(next, None);
    }

    #[test]
    fn a_quantile_is_the_bucket_of_its_number() {
        let histogram = Histogram::new();
        assert_eq!(histogram.quantile(0.5), None);
        (0..=100).for_each(|number| histogram.record(number));
        for (share, number) in [(0.0, 0), (0.5, 50), (0.9, 90), (1.0, 100)] {
            assert!(histogram.quantile(share).unwrap().contains(&number), "{share}");
        }
        assert_eq!((histogram.count(), histogram.sum()), (101, 5050));
        assert_eq!(histogram.buckets().map(|(_, count)| count).sum::<u64>(), 101);
    }
}
