//! The entries of the symbol table: which of them can be called, and what they say.

use core::ffi::CStr;

use super::Image;
use super::layout::ST_NAME;

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
    name: &'a CStr,
    version: Option<&'a CStr>,
    value: u64,
    size: u64,
    kind: SymbolKind,
    weak: bool,
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

/// An entry of the table that can be called, its name not yet read.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) name: usize,
    value: u64,
    size: u64,
    pub(super) kind: SymbolKind,
    weak: bool,
}

impl<'a> Image<'a> {
    /// Entry `index` of the symbol table, if it can be called and its value lies in the image.
    pub(super) fn entry(&self, index: usize) -> Option<Entry> {
        const SHN_UNDEF: u16 = 0;
        const SHN_ABS: u16 = 0xfff1;
        let layout = self.bytes.layout;
        let at = self.symtab.checked_add(index.checked_mul(layout.sym_size)?)?;

        let st_info = self.bytes.byte(at, layout.st_info)?;
        let kind = match st_info & 0xf {
            0 => SymbolKind::NoType,
            2 => SymbolKind::Func,
            _ => return None,
        };
        let weak = match st_info >> 4 {
            1 => false, // STB_GLOBAL
            2 => true,  // STB_WEAK
            _ => return None,
        };
        if matches!(self.bytes.half(at.checked_add(layout.st_shndx)?)?, SHN_UNDEF | SHN_ABS) {
            return None;
        }
        let name = self.bytes.word(at.checked_add(ST_NAME)?)? as usize;
        let value = self.bytes.addr(at.checked_add(layout.st_value)?)?;
        self.load.offset_of(value)?;
        let size = self.bytes.addr(at.checked_add(layout.st_size)?)?;
        Some(Entry { name, value, size, kind, weak })
    }

    /// Adds the name and the version; `None` if the name begins outside the string table.
    pub(super) fn name_entry(&self, index: usize, entry: Entry) -> Option<Symbol<'a>> {
        let Entry { name, value, size, kind, weak } = entry;
        Some(Symbol { name: self.string(name)?, version: self.version_of(index), value, size, kind, weak })
    }

    /// How many entries the symbol table has.
    const fn entries(&self) -> usize {
        self.count
    }
}

/// The symbols of an image, in the order of its table: [`Image::symbols`].
#[derive(Clone, Debug)]
pub struct Symbols<'a> {
    image: Image<'a>,
    next: usize,
}

impl<'a> Symbols<'a> {
    pub(super) const fn new(image: Image<'a>) -> Self {
        Self { image, next: 0 }
    }
}

impl<'a> Iterator for Symbols<'a> {
    type Item = Symbol<'a>;

    fn next(&mut self) -> Option<Symbol<'a>> {
        while self.next < self.image.entries() {
            let index = self.next;
            self.next = index.checked_add(1)?;
            let found = self.image.entry(index).and_then(|entry| self.image.name_entry(index, entry));
            if found.is_some() {
                return found;
            }
        }
        None
    }
}

impl core::iter::FusedIterator for Symbols<'_> {}
