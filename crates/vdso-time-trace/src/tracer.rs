//! [`Tracer`]: the function and the data that a site's pointer leads to.

#![allow(unsafe_code, reason = "the type of a tracer's data is erased here")]

use core::fmt;
use core::ptr;

use crate::event::{Event, Raw, Span};
use crate::site::Site;

/// What is told of the reads of a site.
///
/// A tracer is called by whoever reads the clock: by several threads at once, and in a signal handler that interrupts a call of
/// the same tracer. So it must not lock or allocate; atomics are enough for all that this crate has. It must call the
/// untraced functions: one that reads at a site that leads back to it calls itself for ever.
pub trait Trace: Sync + 'static {
    /// Whether the reads are to be timed: `CLOCK_MONOTONIC` is read before and after them, and [`Event::span`] is there.
    const TIMED: bool = false;

    /// Called by [`attach`](crate::attach()) each time, before any event, and even if the links turn out to be too few.
    fn attached(&self) {}

    /// Called after a read, by the thread that made it, before it has the answer.
    fn event(&self, event: &Event);
}

/// Something that traces, as a site can point to it. Its address is what [`detach`](crate::detach) knows it by.
pub struct Tracer {
    call: Call,
    data: *const (),
    timed: bool,
    attached: unsafe fn(data: *const ()),
}

/// The parts of an event are arguments, so that they stay in registers.
///
/// The data must be that of the tracer whose function this is.
type Call = unsafe fn(data: *const (), site: &'static Site, reading: Raw, span: Span);

// SAFETY: the data is a `&'static` to a `Sync` type, or null.
unsafe impl Sync for Tracer {}
// SAFETY: the same.
unsafe impl Send for Tracer {}

impl Tracer {
    /// A tracer that tells `to`.
    pub const fn new<T: Trace>(to: &'static T) -> Self {
        /// # Safety
        /// The data must be a `&'static T`.
        unsafe fn call<T: Trace>(data: *const (), site: &'static Site, reading: Raw, span: Span) {
            // SAFETY: the caller's.
            unsafe { target::<T>(data) }.event(&Event { site, reading, span });
        }

        /// # Safety
        /// The data must be a `&'static T`.
        unsafe fn attached<T: Trace>(data: *const ()) {
            // SAFETY: the caller's.
            unsafe { target::<T>(data) }.attached();
        }

        Self { call: call::<T>, data: ptr::from_ref(to).cast(), timed: T::TIMED, attached: attached::<T> }
    }

    /// Tells of an event. That is what sites do; it is here for whoever makes events, a test perhaps.
    #[inline]
    pub fn call(&self, event: &Event) {
        self.call_with(event.site, event.reading, event.span);
    }

    #[inline]
    pub(crate) fn call_with(&self, site: &'static Site, reading: Raw, span: Span) {
        // SAFETY: `new` put the two together; a walker's function uses no data.
        unsafe { (self.call)(self.data, site, reading, span) }
    }

    #[inline]
    pub(crate) const fn is_timed(&self) -> bool {
        self.timed
    }

    pub(crate) fn attached(&self) {
        // SAFETY: as above.
        unsafe { (self.attached)(self.data) }
    }

    /// The walker for a site with several tracers.
    pub(crate) fn walker(site: &crate::chain::Anchor<Self>) -> &'static Self {
        static WALKERS: [Tracer; 2] = [Tracer::walker_that_is(false), Tracer::walker_that_is(true)];
        &WALKERS[usize::from(site.tracers().any(Tracer::is_timed))]
    }

    const fn walker_that_is(timed: bool) -> Self {
        fn nothing(_: *const ()) {}

        Self { call: walk, data: ptr::null(), timed, attached: nothing }
    }
}

/// Calls every tracer of a site.
fn walk(_: *const (), site: &'static Site, reading: Raw, span: Span) {
    for tracer in site.anchor().tracers() {
        tracer.call_with(site, reading, span);
    }
}

/// # Safety
/// The data must be a `&'static T`.
unsafe fn target<T>(data: *const ()) -> &'static T {
    // SAFETY: the caller's.
    unsafe { &*data.cast::<T>() }
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracer").field("data", &self.data).field("timed", &self.timed).finish_non_exhaustive()
    }
}
