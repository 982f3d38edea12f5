//! [`Counter`]: a tracer that counts.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::site::{Site, Trace};

/// Counts reads with an atomic addition.
///
/// Threads that read at the same site share the cache line of that site's counter. Different sites
/// do not share a cache line where a line has 64 bytes, because each counter is aligned to 64
/// bytes.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Counter(AtomicU64);

impl Counter {
    /// Creates a counter at 0.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Returns the number of reads.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Trace for Counter {
    #[inline]
    fn event(&self, _: &'static Site, _: Option<i64>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
