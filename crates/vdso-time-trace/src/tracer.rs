//! [`Trace`], which receives events, and [`Tracer`], which a site points to.

use crate::site::Site;

/// Receives the reads of the sites that it is attached to.
///
/// The thread that reads the clock calls the tracer. Several threads may call it at once, and a
/// signal handler may interrupt a call and make another. So a tracer must not lock or allocate. It
/// must call the untraced functions: a read at a site that it traces would recurse without end.
///
/// An array of tracers is a tracer with one for each of the first `N` [`sites`](crate::sites).
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

/// A [`Trace`] that can be attached. [`detach`](crate::detach) knows it by its address.
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

    /// Returns the tracer that calls every tracer of a site.
    pub(crate) fn walker() -> &'static Self {
        struct Walker;

        impl Trace for Walker {
            fn event(&self, site: &'static Site, nanos: Option<i64>) {
                site.chain.tracers().for_each(|tracer| tracer.call(site, nanos));
            }
        }

        static WALKER: Tracer = Tracer::new(&Walker);
        &WALKER
    }
}
