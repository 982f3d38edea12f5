//! The entries of the symbol table: which of them can be called, and what they say.

use core::ffi::CStr;

use super::layout::Any;
use super::parsed::ParsedImage;

/// A symbol that can be called.
///
/// ```
/// # use vdso_time::vdso::Vdso;
/// # if let Ok(vdso) = Vdso::locate() {
/// for symbol in vdso.symbols() {
///     println!("{:#6x} {:4} {:?} {:?}", symbol.value(), symbol.size(), symbol.name(), symbol.version());
/// }
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Symbol<'a> {
    pub(super) name: &'a CStr,
    pub(super) version: Option<&'a CStr>,
    pub(super) value: u64,
    pub(super) size: u64,
    pub(super) kind: SymbolKind,
    pub(super) weak: bool,
    /// Which entry of the table it is.
    pub(super) index: usize,
}

impl<'a> Symbol<'a> {
    /// The name; it need not be UTF-8, and it is empty where a kernel blanked it.
    #[must_use]
    pub const fn name(&self) -> &'a CStr {
        self.name
    }

    /// The version; `None` where the image has no version tables, or the symbol none.
    #[must_use]
    pub const fn version(&self) -> Option<&'a CStr> {
        self.version
    }

    /// `st_value`: its address in the image's own terms (bit 0 set for Thumb code on arm).
    /// [`Vdso::address`](crate::vdso::Vdso::address) is its address in memory.
    #[must_use]
    pub const fn value(&self) -> u64 {
        self.value
    }

    /// `st_size`: how many bytes its code has; 0 if the image does not say.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Whether the image calls it a function.
    #[must_use]
    pub const fn kind(&self) -> SymbolKind {
        self.kind
    }

    /// Whether it is `STB_WEAK`: on `x86_64`, the unprefixed alias of a function.
    #[must_use]
    pub const fn is_weak(&self) -> bool {
        self.weak
    }
}

/// The type of a symbol that can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SymbolKind {
    /// `STT_FUNC`.
    Func,
    /// `STT_NOTYPE`: a function written in assembly, on some architectures.
    NoType,
}

/// The symbols of an image, in the order of its table: [`Image::symbols`](super::Image::symbols).
///
/// ```
/// # use vdso_time::vdso::Vdso;
/// # if let Ok(vdso) = Vdso::locate() {
/// let names: Vec<_> = vdso.symbols().map(|symbol| symbol.name()).collect();
/// assert!(!names.is_empty());
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Symbols<'a> {
    parsed: ParsedImage<'a, Any>,
    next: usize,
}

impl<'a> Symbols<'a> {
    pub(super) const fn new(parsed: ParsedImage<'a, Any>) -> Self {
        Self { parsed, next: 0 }
    }
}

impl<'a> Iterator for Symbols<'a> {
    type Item = Symbol<'a>;

    fn next(&mut self) -> Option<Symbol<'a>> {
        let symbol = self.parsed.entries(self.next).find_map(|entry| self.parsed.symbol(entry));
        self.next = symbol.map_or(usize::MAX, |symbol| symbol.index.saturating_add(1));
        symbol
    }
}

impl core::iter::FusedIterator for Symbols<'_> {}
