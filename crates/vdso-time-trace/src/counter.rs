//! [`Counter`]: how often, and from when to when.

use core::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::event::Event;
use crate::per_site::Fresh;
use crate::tracer::Trace;

/// Counts reads, and keeps the first and the last time that was read: no clock is read for that, the reading is the time.
///
/// It takes one atomic addition and one store. Threads that read at once at one site hand the counter's cache line to and fro, as they do
/// with any shared counter; in a [`PerSite`](crate::PerSite) different sites do not.
#[derive(Debug)]
#[repr(align(64))]
pub struct Counter {
    calls: AtomicU64,
    first: AtomicI64,
    last: AtomicI64,
}

/// No time: 292 years before 1970, or before the machine was started.
const NEVER: i64 = i64::MIN;

impl Counter {
    /// Of nothing yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { calls: AtomicU64::new(0), first: AtomicI64::new(NEVER), last: AtomicI64::new(NEVER) }
    }

    /// The reads.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// The time that the first read gave, in nanoseconds of the site's clock; `None` if it gave none.
    #[must_use]
    pub fn first(&self) -> Option<i64> {
        Some(self.first.load(Ordering::Relaxed)).filter(|nanos| *nanos != NEVER)
    }

    /// The time that the last read gave. Of reads at the same moment, it is that of any.
    #[must_use]
    pub fn last(&self) -> Option<i64> {
        Some(self.last.load(Ordering::Relaxed)).filter(|nanos| *nanos != NEVER)
    }
}

impl Default for Counter {
    fn default() -> Self {
        Self::new()
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
