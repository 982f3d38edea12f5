//! [`PerSite`]: a tracer for each site.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::event::Event;
use crate::site::Site;
use crate::tracer::Trace;

/// `N` tracers, one for each of the first `N` [`sites`](crate::sites).
///
/// Sites do not share a counter. With [`Counter`](crate::Counter) they do not share a cache line.
#[derive(Debug)]
pub struct PerSite<T, const N: usize> {
    tracers: [T; N],
    missed: AtomicU64,
}

/// A tracer with an initial value, for [`PerSite::new`].
pub trait Fresh {
    /// A tracer that has received nothing.
    const FRESH: Self;
}

impl<T: Fresh, const N: usize> PerSite<T, N> {
    /// Creates `N` tracers that have received nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { tracers: [const { T::FRESH }; N], missed: AtomicU64::new(0) }
    }
}

impl<T, const N: usize> PerSite<T, N> {
    /// Returns the tracer of a site, if the site is one of the first `N`.
    #[must_use]
    #[inline]
    pub fn of(&self, site: &Site) -> Option<&T> {
        self.tracers.get(site.index()?)
    }

    /// Returns the number of reads at sites that have no tracer here.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }
}

impl<T: Trace, const N: usize> Trace for PerSite<T, N> {
    const TIMED: bool = T::TIMED;

    fn attached(&self) {
        self.tracers.iter().for_each(T::attached);
    }

    #[inline]
    fn event(&self, event: &Event) {
        if let Some(tracer) = self.of(event.site()) {
            tracer.event(event);
        } else {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
    }
}
