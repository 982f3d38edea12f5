//! [`PerSite`]: one of something for each site.

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::event::Event;
use crate::site::Site;
use crate::tracer::Trace;

/// A tracer made of `N` others, one for each of the first `N` [`sites`](crate::sites).
///
/// Attached to all sites, it keeps them apart: no two sites share a counter, nor, as a rule, a cache line.
pub struct PerSite<T, const N: usize> {
    each: [T; N],
    missed: AtomicU64,
}

/// A tracer that has seen nothing: what a [`PerSite`] is filled with.
pub trait Fresh {
    /// It.
    const FRESH: Self;
}

impl<T: Fresh, const N: usize> PerSite<T, N> {
    /// `N` fresh ones.
    #[must_use]
    pub const fn new() -> Self {
        Self { each: [const { T::FRESH }; N], missed: AtomicU64::new(0) }
    }
}

impl<T: Fresh, const N: usize> Default for PerSite<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const N: usize> PerSite<T, N> {
    /// That of a site, if there is room for it.
    #[must_use]
    #[inline]
    pub fn of(&self, site: &Site) -> Option<&T> {
        self.each.get(site.index()?)
    }

    /// The reads at sites for which there is no room.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }
}

impl<T: Trace, const N: usize> Trace for PerSite<T, N> {
    const TIMED: bool = T::TIMED;

    fn attached(&self) {
        self.each.iter().for_each(T::attached);
    }

    #[inline]
    fn event(&self, event: &Event) {
        match self.of(event.site()) {
            Some(tracer) => tracer.event(event),
            None => {
                self.missed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl<T, const N: usize> fmt::Debug for PerSite<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PerSite").field("room", &N).field("missed", &self.missed()).finish_non_exhaustive()
    }
}
