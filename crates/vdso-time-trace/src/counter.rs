//! [`Counter`]: the number of reads, and the first and last time.

use core::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::event::Event;
use crate::per_site::Fresh;
use crate::tracer::Trace;

/// Counts reads, and keeps the first and the last time that was read.
///
/// An event takes one atomic addition and one store. The reading is the time, so no clock is read.
/// Threads that read at one site share the counter's cache line; see [`PerSite`](crate::PerSite).
#[derive(Debug)]
#[repr(align(64))]
pub struct Counter {
    calls: AtomicU64,
    first: AtomicI64,
    last: AtomicI64,
}

/// No time. A real one is at least 0.
const NEVER: i64 = i64::MIN;

impl Counter {
    /// Creates a counter at 0.
    #[must_use]
    pub const fn new() -> Self {
        Self { calls: AtomicU64::new(0), first: AtomicI64::new(NEVER), last: AtomicI64::new(NEVER) }
    }

    /// Returns the number of reads.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Returns the time of the first read in nanoseconds of the site's clock, if it returned a
    /// time.
    #[must_use]
    pub fn first(&self) -> Option<i64> {
        Some(self.first.load(Ordering::Relaxed)).filter(|nanos| *nanos != NEVER)
    }

    /// Returns the time of the last read, or of any of several at the same moment.
    #[must_use]
    pub fn last(&self) -> Option<i64> {
        Some(self.last.load(Ordering::Relaxed)).filter(|nanos| *nanos != NEVER)
    }
}

impl Fresh for Counter {
    const FRESH: Self = Self::new();
}

impl Trace for Counter {
    #[inline]
    fn event(&self, event: &Event) {
        let before = self.calls.fetch_add(1, Ordering::Relaxed);
        if let Some(nanos) = event.nanos() {
            if before == 0 {
                self.first.store(nanos, Ordering::Relaxed);
            }
            self.last.store(nanos, Ordering::Relaxed);
        }
    }
}
