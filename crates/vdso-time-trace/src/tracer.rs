//! [`Trace`], which receives events, and [`Tracer`], which a site points to.

use core::fmt;

use crate::chain::Chain;
use crate::event::{Event, RawReading, Span};
use crate::site::Site;

/// Receives the reads of the sites that it is attached to.
///
/// The thread that reads the clock calls the tracer. Several threads may call it at once, and a
/// signal handler may interrupt a call and make another. So a tracer must not lock or allocate. It
/// must call the untraced functions: a read at a site that it traces would recurse without end.
pub trait Trace: Sync + 'static {
    /// Whether reads are timed: `CLOCK_MONOTONIC` is read before and after, for [`Event::span`].
    const TIMED: bool = false;

    /// Called by each [`attach`](crate::attach()), before any event and even if that returns an
    /// error.
    fn attached(&self) {}

    /// Called by the reading thread after each read.
    fn event(&self, event: &Event);
}

/// [`Trace`] as a trait object: without its constant, and with the parts of an event in registers.
trait Target: Sync {
    fn attached(&self);
    fn event(&self, site: &'static Site, reading: RawReading, span: Option<&Span>);
}

impl<T: Trace> Target for T {
    fn attached(&self) {
        Trace::attached(self);
    }

    fn event(&self, site: &'static Site, reading: RawReading, span: Option<&Span>) {
        Trace::event(self, &Event { site, reading, span: span.copied() });
    }
}

/// A [`Trace`] that can be attached. [`detach`](crate::detach) knows it by its address.
pub struct Tracer {
    target: &'static dyn Target,
    timed: bool,
}

impl Tracer {
    /// Creates a tracer that sends its events to `target`.
    pub const fn new<T: Trace>(target: &'static T) -> Self {
        Self { target, timed: T::TIMED }
    }

    /// Sends an event, as a site does. A test can call it with events of its own.
    #[inline]
    pub fn call(&self, event: &Event) {
        self.call_with(event.site, event.reading, event.span.as_ref());
    }

    #[inline]
    pub(crate) fn call_with(&self, site: &'static Site, reading: RawReading, span: Option<&Span>) {
        self.target.event(site, reading, span);
    }

    #[inline]
    pub(crate) const fn is_timed(&self) -> bool {
        self.timed
    }

    pub(crate) fn attached(&self) {
        self.target.attached();
    }

    /// Returns the walker for a chain with several tracers. It is timed if one of them is.
    pub(crate) fn walker(chain: &Chain) -> &'static Self {
        static UNTIMED: Tracer = Tracer { target: &Walker, timed: false };
        static TIMED: Tracer = Tracer { target: &Walker, timed: true };
        if chain.tracers().any(Self::is_timed) { &TIMED } else { &UNTIMED }
    }
}

/// Calls every tracer of a site.
struct Walker;

impl Target for Walker {
    fn attached(&self) {}

    fn event(&self, site: &'static Site, reading: RawReading, span: Option<&Span>) {
        site.chain.tracers().for_each(|tracer| tracer.call_with(site, reading, span));
    }
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracer").field("timed", &self.timed).finish_non_exhaustive()
    }
}
