//! The symbol table: which entries can be called, and how they are found.

use core::ffi::CStr;

use super::layout::{Any, Bytes, Format, ST_INFO, ST_NAME, ST_SHNDX, ST_SIZE, ST_VALUE, SYM_SIZE};
use super::{ParsedImage, steps};

/// No name is this long. The limit bounds the work for an image in which every symbol has the whole
/// string table for a name.
const LONGEST_NAME: usize = 1024;

/// A symbol that can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Symbol<'a> {
    name: &'a CStr,
    version: Option<&'a CStr>,
    entry: Entry,
}

/// An entry of the symbol table that can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    index: usize,
    /// The offset of the name in the string table.
    name: usize,
    /// The offset of the version's name.
    version: Option<usize>,
    pub(crate) value: u64,
    pub(crate) size: u64,
    kind: SymbolKind,
    is_weak: bool,
}

impl<'a> Symbol<'a> {
    /// Returns the name. It need not be UTF-8, and is empty if the kernel blanked it.
    #[must_use]
    pub const fn name(&self) -> &'a CStr {
        self.name
    }

    /// Returns the version, or `None` if the image has no versions or the symbol has none.
    #[must_use]
    pub const fn version(&self) -> Option<&'a CStr> {
        self.version
    }

    /// Returns `st_value`, an address relative to
    /// [`Image::load_address`](super::Image::load_address).
    ///
    /// On arm, bit 0 is set for Thumb code. [`Vdso::address`](crate::vdso::Vdso::address) returns
    /// the address in memory.
    #[must_use]
    pub const fn value(&self) -> u64 {
        self.entry.value
    }

    /// Returns `st_size`, the number of bytes of its code, or 0 if the image does not say.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.entry.size
    }

    /// Returns the type of the symbol.
    #[must_use]
    pub const fn kind(&self) -> SymbolKind {
        self.entry.kind
    }

    /// Returns whether it is `STB_WEAK`, as the unprefixed aliases on `x86_64` are.
    #[must_use]
    pub const fn is_weak(&self) -> bool {
        self.entry.is_weak
    }
}

/// The type of a symbol that can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SymbolKind {
    /// `STT_FUNC`.
    Func,
    /// `STT_NOTYPE`: on some architectures, a function written in assembly.
    NoType,
}

/// An iterator over the symbols of an image, in the order of its table.
///
/// [`Image::symbols`](super::Image::symbols) returns it.
#[derive(Clone, Debug)]
pub struct Symbols<'a> {
    pub(super) image: ParsedImage<'a, Any>,
    pub(super) next: usize,
}

impl<'a> Iterator for Symbols<'a> {
    type Item = Symbol<'a>;

    fn next(&mut self) -> Option<Symbol<'a>> {
        let symbol = self.image.entries(self.next).find_map(|entry| self.image.symbol(entry));
        self.next = symbol.map_or(usize::MAX, |symbol| symbol.entry.index.saturating_add(1));
        symbol
    }
}

impl core::iter::FusedIterator for Symbols<'_> {}

impl<'a, F: Format> ParsedImage<'a, F> {
    /// Returns the first entry with this name and version that can be called. A string of 1024
    /// bytes or more, or with a NUL, is never found. In an image without versions, every entry has
    /// the version.
    #[inline(always)]
    pub(crate) fn find(&self, name: &str, version: Option<&str>) -> Option<Entry> {
        let is_short = |string: &str| string.len() < LONGEST_NAME;
        if !is_short(name) || !version.is_none_or(is_short) {
            return None;
        }
        let symtab = self.bytes.with(self.symtab);
        let wanted = version.filter(|_| self.has_versions());
        // A loop takes less of a small stack than closures in an unoptimised program.
        for (index, symbol) in symtab.table(symtab.of(SYM_SIZE)).enumerate() {
            if !self.has_string(symbol.word(ST_NAME), name) {
                continue;
            }
            let Some(entry) = self.entry(index, symbol) else { continue };
            let has = |wanted| entry.version.is_some_and(|start| self.has_string(start, wanted));
            if wanted.is_none_or(has) {
                return Some(entry);
            }
        }
        None
    }

    /// Returns the entries that can be called, from one of the table's on.
    pub(crate) fn entries(&self, first: usize) -> impl Iterator<Item = Entry> {
        let symtab = self.bytes.with(self.symtab);
        let size = symtab.of(SYM_SIZE);
        let table = symtab.after(first, size).unwrap_or(symtab.with(&[])).table(size);
        table.zip(first..).filter_map(|(symbol, index)| self.entry(index, symbol))
    }

    /// Returns the entry whose code contains an address, a global one rather than its weak alias.
    pub(crate) fn at(&self, address: u64) -> Option<Entry> {
        let address = self.code_address(address);
        let around = |entry: &Entry| {
            let inside = address.wrapping_sub(self.code_address(entry.value));
            inside < entry.size.max(1)
        };
        let mut weak = None;
        for entry in self.entries(0).filter(around) {
            if !entry.is_weak {
                return Some(entry);
            }
            weak = weak.or(Some(entry));
        }
        weak
    }

    /// Returns where a symbol's code begins. On arm, bit 0 of the value marks Thumb code.
    fn code_address(&self, value: u64) -> u64 {
        const EM_ARM: u16 = 40;
        if self.machine() == EM_ARM { value & !1 } else { value }
    }

    /// Returns whether a function's name is blank.
    pub(crate) fn has_blanked_names(&self) -> bool {
        let is_blank = |name| self.strtab.get(name) == Some(&0);
        self.entries(0).any(|entry| entry.kind == SymbolKind::Func && is_blank(entry.name))
    }

    /// Adds the strings, the only part of a symbol that takes more than a few steps to read.
    pub(crate) fn symbol(&self, entry: Entry) -> Option<Symbol<'a>> {
        let string = |start| {
            let string = self.strtab.get(start..)?;
            let string = string.get(..LONGEST_NAME).unwrap_or(string);
            let found = CStr::from_bytes_until_nul(string).ok();
            steps::take(found.map_or(string.len(), CStr::count_bytes));
            found
        };
        let version = entry.version.and_then(string);
        Some(Symbol { name: string(entry.name)?, version, entry })
    }

    /// Returns an entry of the table if it can be called, its value lies in the image, and its name
    /// begins in the string table.
    #[inline(always)]
    fn entry(&self, index: usize, symbol: Bytes<'_, F>) -> Option<Entry> {
        const SHN_UNDEF: u16 = 0;
        const SHN_ABS: u16 = 0xfff1;
        let st_info = symbol.byte(ST_INFO);
        let kind = match st_info & 0xf {
            0 => SymbolKind::NoType,
            2 => SymbolKind::Func,
            _ => return None,
        };
        let is_weak = match st_info >> 4 {
            1 => false, // STB_GLOBAL
            2 => true,  // STB_WEAK
            _ => return None,
        };
        if matches!(symbol.half(ST_SHNDX), SHN_UNDEF | SHN_ABS) {
            return None;
        }
        let (value, size, name) = (symbol.addr(ST_VALUE), symbol.addr(ST_SIZE), symbol.word(ST_NAME));
        if !self.load.contains(value) || name >= self.strtab.len() {
            return None;
        }
        let version = self.versions.name_of(self.bytes, index);
        Some(Entry { index, name, version, value, size, kind, is_weak })
    }

    /// Returns whether the string at `start` is `wanted`. A blank string and one with a NUL never
    /// match.
    #[inline(always)]
    fn has_string(&self, start: usize, wanted: &str) -> bool {
        let end = start.saturating_add(wanted.len());
        // The end is compared first, because it differs in most names.
        if self.strtab.get(end) != Some(&0) || wanted.is_empty() {
            return false;
        }
        let is_same = |string: &[u8]| {
            string.iter().zip(wanted.as_bytes()).all(|(byte, wanted)| {
                steps::take(1);
                byte == wanted && *byte != 0
            })
        };
        self.strtab.get(start..end).is_some_and(is_same)
    }
}
