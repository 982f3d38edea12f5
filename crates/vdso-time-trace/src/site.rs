//! [`Site`]: a call in the source that reads a clock, and the [`Tracer`] that it points to. The
//! linker makes the list of all sites.

#![allow(
    unsafe_code,
    reason = "the content of an `AtomicPtr` becomes a reference"
)]

use core::fmt;
use core::ptr::{self, null_mut};
use core::str;
use core::sync::atomic::{AtomicPtr, Ordering};

/// A use of [`traced!`](crate::traced).
pub struct Site {
    /// Null without a tracer.
    tracer: AtomicPtr<Tracer>,
    name: &'static str,
    function: &'static str,
    file: &'static str,
    line: u32,
}

/// Receives the reads of the sites that it is attached to.
///
/// The thread that reads the clock calls the tracer. Several threads may call it at the same time,
/// and a signal handler may interrupt a call and make another. So a tracer must not lock or
/// allocate. A tracer that reads the clock itself must do so without [`traced!`](crate::traced): a
/// read at a site that it traces would call the tracer again, endlessly.
///
/// An array of `N` tracers is a tracer as well. Each element receives the reads of one of the first
/// `N` [`sites`](crate::sites), in the order of that list, and the array ignores the reads of all
/// other sites. A pair of tracers is a tracer that passes each read to the first tracer and then to
/// the second.
pub trait Trace: Sync + 'static {
    /// Receives each read after it was made, with its [time](crate::Read::nanos).
    fn event(&self, site: &'static Site, nanos: Option<i64>);
}

/// A [`Trace`] in the form that [`Site::set_tracer`] accepts. A site points to it with a single
/// pointer, which can be exchanged atomically.
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

/// Each [`traced!`](crate::traced) puts its site into a section of this name, and the linker joins
/// the sites of all sections with the same name. A program can contain two versions of this crate,
/// whose `Site` types can differ, so the name contains the version.
#[cfg(feature = "enabled")]
#[doc(hidden)]
#[linkme::distributed_slice]
pub static VDSO_TIME_TRACE_0_1_SITES: [Site];

/// Returns every site in this executable or shared object, whether it is ever called or not.
///
/// Without the feature `enabled`, the list is empty.
#[must_use]
#[inline]
pub fn sites() -> &'static [Site] {
    #[cfg(feature = "enabled")]
    return VDSO_TIME_TRACE_0_1_SITES.static_slice();
    #[cfg(not(feature = "enabled"))]
    &[]
}

impl Site {
    /// Creates the site of a [`traced!`](crate::traced). `function` is the text of the function, in
    /// UTF-8.
    #[doc(hidden)]
    #[must_use]
    pub const fn new(
        name: &'static str,
        function: &'static [u8],
        file: &'static str,
        line: u32,
    ) -> Self {
        let Ok(function) = str::from_utf8(function) else {
            panic!("the function's name is not UTF-8")
        };
        Self {
            tracer: AtomicPtr::new(null_mut()),
            name,
            function,
            file,
            line,
        }
    }

    /// Sets the tracer that receives the reads of this site. Returns the one that it replaces.
    ///
    /// This function does not wait, so a signal handler may call it. A read that is under way may
    /// still call the replaced tracer.
    #[allow(clippy::must_use_candidate, reason = "it is called for its effect")]
    pub fn set_tracer(&self, tracer: Option<&'static Tracer>) -> Option<&'static Tracer> {
        let pointer = tracer.map_or(null_mut(), |tracer| ptr::from_ref(tracer).cast_mut());
        let replaced = self.tracer.swap(pointer, Ordering::AcqRel);
        // SAFETY: a site's pointer is null, or `set_tracer` made it from a `&'static Tracer`.
        unsafe { reference(replaced) }
    }

    /// Returns the name from the macro call, or the path of the module if the call gives no name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the function as the source names it: `vdso_time::clock_gettime`, `Instant::now`. Of
    /// a chain of calls it is the first one: `Clock::new` of `Clock::new().now()`.
    #[must_use]
    pub const fn function(&self) -> &'static str {
        self.function
    }

    /// Returns the source file.
    #[must_use]
    pub const fn file(&self) -> &'static str {
        self.file
    }

    /// Returns the line in the source file.
    #[must_use]
    pub const fn line(&self) -> u32 {
        self.line
    }

    /// Returns the position in [`sites`], or `None` for a site of another shared object.
    #[must_use]
    #[inline]
    pub fn index(&self) -> Option<usize> {
        let offset = ptr::from_ref(self)
            .addr()
            .wrapping_sub(sites().as_ptr().addr());
        let index = offset / size_of::<Self>();
        if index < sites().len() {
            Some(index)
        } else {
            None
        }
    }

    /// Returns whether the site has a tracer. The load is `Relaxed`, so an untraced read has no
    /// barrier, even on arm.
    #[must_use]
    #[inline]
    pub fn is_traced(&self) -> bool {
        !self.tracer.load(Ordering::Relaxed).is_null()
    }

    /// Sends an event to the tracer of the site.
    #[doc(hidden)]
    #[cold]
    #[inline(never)]
    pub fn trace(&'static self, nanos: Option<i64>) {
        // The load is `Acquire`, so that the tracer sees everything that was written before
        // `set_tracer`.
        let tracer = self.tracer.load(Ordering::Acquire);
        // SAFETY: a site's pointer is null, or `set_tracer` made it from a `&'static Tracer`.
        if let Some(tracer) = unsafe { reference(tracer) } {
            tracer.call(self, nanos);
        }
    }
}

/// Returns the tracer behind a site's pointer, or `None` if the pointer is null.
///
/// # Safety
///
/// The pointer must be null, or made from a `&'static Tracer`.
unsafe fn reference(tracer: *mut Tracer) -> Option<&'static Tracer> {
    // SAFETY: the caller promises that a pointer that is not null is from a `&'static Tracer`.
    unsafe { tracer.as_ref() }
}

/// Prints the name, function, file and line.
impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} ({}:{})",
            self.name, self.function, self.file, self.line
        )
    }
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
