//! [`Site`]: a place in the source that reads a clock. The linker makes the list of all sites.

use core::fmt;
use core::ptr::{self, null_mut};
use core::str;
use core::sync::atomic::AtomicPtr;

use crate::chain::{AtomicRef, Chain};

/// A use of [`traced!`](crate::traced).
pub struct Site {
    pub(crate) chain: Chain,
    name: &'static str,
    function: &'static str,
    file: &'static str,
    line: u32,
}

/// Each [`traced!`](crate::traced) puts its site into a section of this name, and the linker joins
/// them. The name is unique in the program, so it has the version of this crate's `Site`.
#[cfg(feature = "enabled")]
#[doc(hidden)]
#[linkme::distributed_slice]
pub static VDSO_TIME_TRACE_0_1_SITES: [Site];

/// Returns every site in this executable or shared object, whether it is ever called or not.
///
/// Without the feature `enabled` there are none.
#[must_use]
#[inline]
pub fn sites() -> &'static [Site] {
    #[cfg(feature = "enabled")]
    return VDSO_TIME_TRACE_0_1_SITES.static_slice();
    #[cfg(not(feature = "enabled"))]
    &[]
}

impl Site {
    /// For [`traced!`](crate::traced). `call` is the text of the call.
    #[doc(hidden)]
    #[must_use]
    pub const fn new(name: &'static str, call: &'static str, file: &'static str, line: u32) -> Self {
        let (ops, links) = (AtomicPtr::new(null_mut()), AtomicPtr::new(null_mut()));
        let chain = Chain { ops: AtomicRef(ops), links: AtomicRef(links) };
        Self { chain, name, function: function_of(call), file, line }
    }

    /// Returns the name given to the macro, or else the path of the module.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the function as the source names it: `vdso_time::clock_gettime`, `Instant::now`.
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
        let offset = ptr::from_ref(self).addr().wrapping_sub(sites().as_ptr().addr());
        Some(offset / size_of::<Self>()).filter(|index| *index < sites().len())
    }

    /// Whether a tracer is attached.
    #[must_use]
    #[inline]
    pub fn is_traced(&self) -> bool {
        self.chain.is_traced()
    }

    /// Sends an event to the tracers of the site.
    #[doc(hidden)]
    #[cold]
    #[inline(never)]
    pub fn trace(&'static self, nanos: Option<i64>) {
        if let Some(tracer) = self.chain.ops() {
            tracer.call(self, nanos);
        }
    }
}

/// Returns the text of a call up to its arguments.
const fn function_of(call: &str) -> &str {
    let bytes = call.as_bytes();
    let mut end = 0;
    while end < bytes.len() && bytes[end] != b'(' {
        end += 1;
    }
    match str::from_utf8(bytes.split_at(end).0) {
        Ok(function) => function.trim_ascii_end(),
        Err(_) => call, // cannot happen: `(` is no part of another character
    }
}

/// Its name, function, file and line.
impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({}:{})", self.name, self.function, self.file, self.line)
    }
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
