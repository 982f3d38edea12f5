//! [`Interval`]: the cost of reads and the time between them.

use core::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::event::Event;
use crate::histogram::Histogram;
use crate::per_site::Fresh;
use crate::tracer::Trace;

/// Two histograms in nanoseconds: the time between reads, and the cost of reads.
///
/// It counts the reads of all threads together. Its size is 4 KiB.
#[derive(Debug)]
pub struct Interval {
    between: Histogram,
    cost: Histogram,
    close: AtomicU64,
    /// The start of the last read; 0 before the first.
    last: AtomicI64,
}

impl Interval {
    /// A read is close if it begins less than this many nanoseconds after the one before.
    pub const CLOSE: u64 = 1_000;

    /// Creates an interval without reads.
    #[must_use]
    pub const fn new() -> Self {
        let (between, cost) = (Histogram::new(), Histogram::new());
        Self { between, cost, close: AtomicU64::new(0), last: AtomicI64::new(0) }
    }

    /// Returns the times from the start of a read to the start of the next. The order of reads at
    /// the same moment is arbitrary, and such a time counts as 0.
    #[must_use]
    pub const fn between(&self) -> &Histogram {
        &self.between
    }

    /// Returns the [costs](Event::cost) of the reads.
    #[must_use]
    pub const fn cost(&self) -> &Histogram {
        &self.cost
    }

    /// Returns the number of reads that were [`CLOSE`](Self::CLOSE) to the one before. If one
    /// thread makes both, it can cache the first.
    #[must_use]
    pub fn close(&self) -> u64 {
        self.close.load(Ordering::Relaxed)
    }
}

impl Fresh for Interval {
    const FRESH: Self = Self::new();
}

impl Trace for Interval {
    const TIMED: bool = true;

    fn event(&self, event: &Event) {
        let (Some((start, _)), Some(cost)) = (event.span(), event.cost()) else { return };
        self.cost.record(cost);
        let last = self.last.swap(start, Ordering::Relaxed);
        if last == 0 {
            return;
        }
        let between = (start - last).max(0) as u64;
        self.between.record(between);
        if between < Self::CLOSE {
            self.close.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Reading;
    use crate::site::Site;

    static SITE: Site = Site::new("a site", "time()", "", 0);

    #[test]
    fn a_read_less_than_a_microsecond_after_another_is_close() {
        let interval = Interval::new();
        // A third thread overtook the last read.
        for start in [5_000, 5_999, 6_999, 10_000, 9_990] {
            let span = Some((start, start + 20));
            interval.event(&Event { site: &SITE, reading: Reading::Nanos(0).into(), span });
        }
        let between = [(0..=0, 1), (896..=1023, 2), (2560..=3071, 1)];
        assert!(interval.between().buckets().eq(between), "{:?}", interval.between());
        assert_eq!((interval.between().sum(), interval.close(), interval.cost().count()), (5000, 2, 5));
    }
}
