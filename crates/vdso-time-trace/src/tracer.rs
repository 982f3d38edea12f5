//! Tracers that consist of several tracers: arrays and pairs.

use crate::site::{Site, Trace};

impl<T: Trace, const N: usize> Trace for [T; N] {
    #[inline]
    fn event(&self, site: &'static Site, nanos: Option<i64>) {
        let Some(index) = site.index() else {
            return;
        };
        if let Some(tracer) = self.get(index) {
            tracer.event(site, nanos);
        }
    }
}

impl<A: Trace, B: Trace> Trace for (A, B) {
    #[inline]
    fn event(&self, site: &'static Site, nanos: Option<i64>) {
        self.0.event(site, nanos);
        self.1.event(site, nanos);
    }
}
