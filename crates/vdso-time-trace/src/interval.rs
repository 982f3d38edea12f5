//! [`Interval`]: how long reads take, and how long after one another they are.

use core::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::event::Event;
use crate::histogram::Histogram;
use crate::per_site::Fresh;
use crate::tracer::Trace;

/// Histograms, in nanoseconds, of the time from each read to the next and of what the reads cost.
///
/// The reads are those of all threads together. It is 4 KiB large.
#[derive(Debug)]
pub struct Interval {
    between: Histogram,
    cost: Histogram,
    close: AtomicU64,
    /// The start of the last read.
    last: AtomicI64,
}

impl Interval {
    /// A read that begins less than so many nanoseconds after the one before is close to it.
    pub const CLOSE: u64 = 1_000;

    /// Of nothing yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            between: Histogram::new(),
            cost: Histogram::new(),
            close: AtomicU64::new(0),
            last: AtomicI64::new(0),
        }
    }

    /// From the start of each read to that of the next. Of two at the same moment either may be the next: that is 0.
    #[must_use]
    pub const fn between(&self) -> &Histogram {
        &self.between
    }

    /// [What the reads cost](Event::cost).
    #[must_use]
    pub const fn cost(&self) -> &Histogram {
        &self.cost
    }

    /// The reads that were closer than [`CLOSE`](Self::CLOSE) to the one before: candidates for caching, if one thread makes them.
    #[must_use]
    pub fn close(&self) -> u64 {
        self.close.load(Ordering::Relaxed)
    }
}

impl Default for Interval {
    fn default() -> Self {
        Self::new()
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
            return; // the first
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
    use crate::event::{Reading, Span};
    use crate::site::Site;

    static SITE: Site = Site::new("a site", "time()", "", 0);

    #[test]
    fn a_read_is_close_that_begins_less_than_a_microsecond_after_another() {
        let interval = Interval::new();
        // The last was overtaken.
        for start in [5_000, 5_999, 6_999, 10_000, 9_990] {
            let span = Span { start, end: start + 20 };
            interval.event(&Event { site: &SITE, reading: Reading::Nanos(0).into(), span });
        }
        let between = [(0..=0, 1), (896..=1023, 2), (2560..=3071, 1)];
        assert!(interval.between().buckets().eq(between), "{:?}", interval.between());
        assert_eq!((interval.between().sum(), interval.close(), interval.cost().count()), (5000, 2, 5));
    }
}
