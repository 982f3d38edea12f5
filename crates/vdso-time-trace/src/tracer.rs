//! [`Trace`], which receives events, [`Tracer`], which a site points to, and [`Counter`].

use core::sync::atomic::{AtomicU64, Ordering};

use crate::site::Site;

/// Receives the reads of the sites that it is attached to.
///
/// The thread that reads the clock calls the tracer. Several threads may call it at once, and a
/// signal handler may interrupt a call and make another. So a tracer must not lock or allocate. It
/// must call the untraced functions: a read at a site that it traces would recurse without end.
///
/// An array of tracers is a tracer with one for each of the first `N` [`sites`](crate::sites). A
/// pair is a tracer that calls both.
pub trait Trace: Sync + 'static {
    /// Called after each read, with the [time](crate::Read::nanos) that was read.
    fn event(&self, site: &'static Site, nanos: Option<i64>);
}

impl<T: Trace, const N: usize> Trace for [T; N] {
    #[inline]
    fn event(&self, site: &'static Site, nanos: Option<i64>) {
        if let Some(tracer) = site.index().and_then(|index| self.get(index)) {
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

/// A [`Trace`] that [`Site::set_tracer`] accepts: one pointer, which can be exchanged atomically.
pub struct Tracer(&'static dyn Trace);

impl Tracer {
    /// Creates a tracer that sends its events to `target`.
    pub const fn new(target: &'static dyn Trace) -> Self {
        Self(target)
    }

    /// Sends an event, as a site does.
    #[inline]
    pub fn call(&self, site: &'static Site, nanos: Option<i64>) {
        self.0.event(site, nanos);
    }
}

/// Counts reads, by an atomic addition.
///
/// Threads that read at one site share the counter's cache line. Counters of an array do not share
/// one, so sites do not.
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
