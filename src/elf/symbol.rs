//! [`Symbol`]: what an image says about a function.

use core::ffi::CStr;

/// A symbol that can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Symbol<'a> {
    pub(super) name: &'a CStr,
    pub(super) version: Option<&'a CStr>,
    pub(super) value: u64,
    pub(super) size: u64,
    /// Whether the symbol's binding is `STB_WEAK`.
    pub(super) is_weak: bool,
}

impl<'a> Symbol<'a> {
    /// Returns the symbol's name. The name need not be UTF-8. It is empty if the kernel blanked it,
    /// as 32-bit arm kernels do if they find no usable timer
    /// ([`BlankedNames`](crate::FallbackReason::BlankedNames)).
    #[must_use]
    pub const fn name(&self) -> &'a CStr {
        self.name
    }

    /// Returns the version, or `None` if the image has no versions or the symbol has none.
    #[must_use]
    pub const fn version(&self) -> Option<&'a CStr> {
        self.version
    }

    /// Returns `st_value`, the symbol's address as linked.
    ///
    /// The loaded segment begins at [`Image::load_address`](super::Image::load_address), so the
    /// symbol is `value - load_address` bytes after the start of the segment (the subtraction
    /// wraps).
    ///
    /// On arm, bit 0 of the value is set for Thumb code.
    /// [`Vdso::symbols`](crate::vdso::Vdso::symbols) returns the symbol's address in memory.
    #[must_use]
    pub const fn value(&self) -> u64 {
        self.value
    }

    /// Returns `st_size`: the number of bytes of the symbol's code, or 0 if the image does not
    /// state it.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }
}
