//! [`Site`]: a place in the source that reads a clock, and the list of all, which the linker makes.

use core::fmt;
use core::ptr::{self, null_mut};
use core::str;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use crate::chain::{self, Anchor, Place};
use crate::event::{Read, Span};
use crate::timing::now;
use crate::tracer::Tracer;

/// A use of [`traced!`](crate::traced).
pub struct Site {
    anchor: Anchor<Tracer>,
    name: &'static str,
    function: &'static str,
    file: &'static str,
    line: u32,
    /// Its place in the list and 1, once somebody has asked.
    number: AtomicUsize,
}

/// What a site points to.
#[doc(hidden)]
pub struct Ops(chain::Ops<Tracer>);

/// Made by [`traced!`](crate::traced), each in a section of this name, which the linker puts together.
///
/// It does so for the whole program: the name must be no other crate's, nor that of another version of this one, whose `Site` may differ.
#[cfg(feature = "enabled")]
#[doc(hidden)]
#[linkme::distributed_slice]
pub static VDSO_TIME_TRACE_0_1_SITES: [Site];

/// Every site that was linked into this executable or shared object, whether it is ever called or not.
///
/// None without the feature `enabled`.
#[must_use]
pub fn sites() -> &'static [Site] {
    #[cfg(feature = "enabled")]
    return VDSO_TIME_TRACE_0_1_SITES.static_slice();
    #[cfg(not(feature = "enabled"))]
    &[]
}

impl Site {
    /// For [`traced!`](crate::traced); `call` is the text of the call.
    #[doc(hidden)]
    #[must_use]
    pub const fn new(name: &'static str, call: &'static str, file: &'static str, line: u32) -> Self {
        let anchor =
            Anchor { ops: Place(AtomicPtr::new(null_mut())), links: Place(AtomicPtr::new(null_mut())) };
        Self { anchor, name, function: function_of(call), file, line, number: AtomicUsize::new(0) }
    }

    /// Its name: what the macro was given, else the module.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The function that it calls, as it is written there: `vdso_time::clock_gettime`, `Instant::now`.
    #[must_use]
    pub const fn function(&self) -> &'static str {
        self.function
    }

    /// The file.
    #[must_use]
    pub const fn file(&self) -> &'static str {
        self.file
    }

    /// The line.
    #[must_use]
    pub const fn line(&self) -> u32 {
        self.line
    }

    /// Its place in [`sites`]; `None` if it belongs to another shared object, which has its own list.
    #[must_use]
    #[inline]
    pub fn index(&self) -> Option<usize> {
        match self.number.load(Ordering::Relaxed) {
            0 => self.find(),
            number => Some(number - 1),
        }
    }

    #[cold]
    fn find(&self) -> Option<usize> {
        let index = sites().iter().position(|site| ptr::eq(site, self))?;
        self.number.store(index + 1, Ordering::Relaxed);
        Some(index)
    }

    /// Whether a tracer is attached.
    #[must_use]
    #[inline]
    pub fn is_traced(&self) -> bool {
        self.ops().is_some()
    }

    pub(crate) const fn anchor(&self) -> &Anchor<Tracer> {
        &self.anchor
    }

    /// What the site points to, for [`traced!`](crate::traced).
    #[doc(hidden)]
    #[must_use]
    #[inline]
    pub fn ops(&self) -> Option<Ops> {
        self.anchor.ops().map(Ops)
    }

    /// The read at a site that has a tracer.
    ///
    /// The answer comes in a tuple, which is another place in memory than that of the whole `traced!`: else this function would
    /// write to that one, and the bare call's answer would be copied to it as 16 bytes that were stored 8 and 8, for which the CPU waits.
    #[doc(hidden)]
    #[cold]
    #[inline(never)]
    pub fn trace<R: Read>(&'static self, ops: Ops, read: impl FnOnce() -> R) -> (R,) {
        let ops = ops.0.get();
        if ops.is_timed() {
            return (self.trace_timed(ops, read),);
        }
        let answer = read();
        ops.call_with(self, answer.reading().into(), Span::NONE);
        (answer,)
    }

    /// A function of its own: else the untimed reads would save registers for it.
    #[inline(never)]
    fn trace_timed<R: Read>(&'static self, ops: &Tracer, read: impl FnOnce() -> R) -> R {
        let start = now();
        let answer = read();
        let end = now();
        ops.call_with(self, answer.reading().into(), Span { start, end });
        answer
    }
}

/// The text of a call up to its arguments.
const fn function_of(call: &str) -> &str {
    let bytes = call.as_bytes();
    let mut end = 0;
    while end < bytes.len() && bytes[end] != b'(' {
        end += 1;
    }
    match str::from_utf8(bytes.split_at(end).0) {
        Ok(function) => function.trim_ascii_end(),
        Err(_) => call, // there is none: `(` is no part of another character
    }
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Its name, function, file and line.
impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({}:{})", self.name, self.function, self.file, self.line)
    }
}
