//! [`ParsedImage`]: the tables of an image, and its symbols.

use core::ffi::CStr;
use core::fmt;

use super::error::ParseError;
use super::hash;
use super::headers::{
    DT_GNU_HASH, DT_HASH, DT_STRSZ, DT_STRTAB, DT_SYMENT, DT_SYMTAB, DT_VERDEF, DT_VERDEFNUM,
    DT_VERSYM, Dynamic, Load, ProgramHeaders,
};
use super::layout::{
    Bytes, E_MACHINE, Format, ST_INFO, ST_NAME, ST_SHNDX, ST_SIZE, ST_VALUE, SYM_SIZE,
};
use super::steps;
use super::symbol::{Entry, Symbol};
use super::version::{self, Versions};

/// No name is this long. The limit bounds the work for an image in which the name of every symbol
/// is the whole string table.
const LONGEST_NAME: usize = 1024;

/// The bytes and the tables of an image.
#[derive(Clone, Copy)]
pub(crate) struct ParsedImage<'a, F> {
    bytes: Bytes<'a, F>,
    pub(crate) load: Load,
    symtab: &'a [u8],
    strtab: &'a [u8],
    versions: Versions<'a>,
}

impl<F> fmt::Debug for ParsedImage<'_, F> {
    /// Writes where the image is, and no bytes of it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} bytes at {:p}",
            self.bytes.raw.len(),
            self.bytes.raw.as_ptr()
        )
    }
}

impl<'a, F: Format> ParsedImage<'a, F> {
    /// Finds the tables of an image with these headers, which begins with `bytes`. Fails if a table
    /// may extend past `bytes`. A caller that has only a part tries again with the whole image.
    #[inline(always)]
    pub(crate) fn new(headers: &ProgramHeaders<F>, bytes: &'a [u8]) -> Result<Self, ParseError> {
        let ProgramHeaders {
            format,
            load,
            ref dynamic,
            machine,
        } = *headers;
        let bytes = Bytes { raw: bytes, format };
        let dynamic = bytes
            .raw
            .get(dynamic.clone())
            .ok_or(ParseError::NoDynamicSegment)?;
        let dynamic = Dynamic::read(bytes.with(dynamic));
        let segment = bytes.tail(load.start).ok_or(ParseError::Truncated)?;
        // The bytes from a table on. An address of 0 means that the table is missing.
        let table = |address: u64| {
            let offset = usize::try_from(address.wrapping_sub(load.vaddr)).unwrap_or(usize::MAX);
            segment
                .tail(offset)
                .filter(|table| address != 0 && !table.raw.is_empty())
        };

        let from_strings = table(dynamic.get(DT_STRTAB)).ok_or(ParseError::StringTable)?;
        let strsz = dynamic.get(DT_STRSZ);
        let strtab = string_table(from_strings.raw, strsz).ok_or(ParseError::StringTable)?;
        let symbols = table(dynamic.get(DT_SYMTAB)).ok_or(ParseError::SymbolTable)?;
        let size = bytes.of(SYM_SIZE);
        let syment = dynamic.get(DT_SYMENT);
        if syment != 0 && syment != size as u64 {
            return Err(ParseError::SymbolTable);
        }
        let (hash, gnu_hash) = (dynamic.get(DT_HASH), dynamic.get(DT_GNU_HASH));
        let count = if hash != 0 {
            table(hash)
                .and_then(|hash| hash::count_sysv(hash, machine))
                .ok_or(ParseError::SysvHash)?
        } else if gnu_hash != 0 {
            table(gnu_hash)
                .and_then(hash::count_gnu)
                .ok_or(ParseError::GnuHash)?
        } else {
            count_before(symbols, from_strings)
        };
        let whole = symbols.first(count as usize, size);
        let needs_whole_image = strsz == 0 || (hash == 0 && gnu_hash == 0) || whole.is_none();
        if needs_whole_image && bytes.raw.len() < load.end() {
            return Err(ParseError::Truncated);
        }
        let (symtab, count) = match whole {
            Some(symtab) => (symtab, count),
            None => (symbols, count_all(symbols)),
        };
        let mut versions = Versions::default();
        if dynamic.get(DT_VERSYM) != 0 && dynamic.get(DT_VERDEF) != 0 {
            let versym =
                table(dynamic.get(DT_VERSYM)).and_then(|versym| versym.first(count as usize, 2));
            let versym = versym.ok_or(ParseError::Versions)?;
            let verdef = table(dynamic.get(DT_VERDEF)).ok_or(ParseError::Versions)?;
            let verdefnum = dynamic.get(DT_VERDEFNUM);
            version::find(verdef, verdefnum, version::NO_INDEX)?;
            versions = Versions {
                versym: versym.raw,
                verdef: verdef.raw,
                verdefnum,
            };
        }
        Ok(Self {
            bytes,
            load,
            symtab: symtab.raw,
            strtab,
            versions,
        })
    }

    pub(crate) fn machine(&self) -> u16 {
        self.bytes.half(E_MACHINE)
    }

    pub(crate) fn class(&self) -> u8 {
        if self.bytes.is_64_bit() { 2 } else { 1 }
    }

    pub(crate) fn is_big_endian(&self) -> bool {
        self.bytes.format.get().is_big_endian
    }

    pub(crate) fn has_versions(&self) -> bool {
        !self.versions.verdef.is_empty()
    }

    /// Returns the bytes that the tables were read from.
    #[inline]
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes.raw
    }

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
        if const { F::IS_KNOWN } || symtab.is_own() {
            self.find_in(
                Bytes {
                    format: F::OWN,
                    ..symtab
                },
                name,
                version,
            )
        } else {
            self.find_in(symtab, name, version)
        }
    }

    #[inline(always)]
    fn find_in(&self, symtab: Bytes<'_, F>, name: &str, version: Option<&str>) -> Option<Entry> {
        let wanted = version.filter(|_| self.has_versions());
        // In a debug build a loop takes less stack than closures.
        for (index, symbol) in symtab.table(symtab.of(SYM_SIZE)).enumerate() {
            if !self.has_string(symbol.word(ST_NAME), name) {
                continue;
            }
            let Some(entry) = self.entry(index, symbol) else {
                continue;
            };
            let has = |wanted| {
                entry
                    .version
                    .is_some_and(|start| self.has_string(start, wanted))
            };
            if wanted.is_none_or(has) {
                return Some(entry);
            }
        }
        None
    }

    /// Returns the entries that can be called, in the order of the table.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry> + Clone + use<'a, F> {
        let image = *self;
        let symtab = self.bytes.with(self.symtab);
        let table = symtab.table(symtab.of(SYM_SIZE)).enumerate();
        table.filter_map(move |(index, symbol)| image.entry(index, symbol))
    }

    /// Returns the entry whose code contains an address, a global one rather than its weak alias.
    pub(crate) fn at(&self, address: u64) -> Option<Entry> {
        let address = self.code_address(address);
        let around = |entry: &Entry| {
            let inside = address.wrapping_sub(self.code_address(entry.value));
            inside < entry.size.max(1)
        };
        self.entries()
            .filter(around)
            .min_by_key(|entry| entry.is_weak)
    }

    /// Returns where a symbol's code begins. On arm, bit 0 of the value marks Thumb code.
    fn code_address(&self, value: u64) -> u64 {
        const EM_ARM: u16 = 40;
        if self.machine() == EM_ARM {
            value & !1
        } else {
            value
        }
    }

    /// Returns whether a function's name is blank.
    pub(crate) fn has_blanked_names(&self) -> bool {
        let is_blank = |name| self.strtab.get(name) == Some(&0);
        self.entries()
            .any(|entry| entry.is_func && is_blank(entry.name))
    }

    /// Reads the strings of an entry, the only part of a symbol that can take many steps.
    pub(crate) fn symbol(&self, entry: Entry) -> Option<Symbol<'a>> {
        let string = |start| {
            let string = self.strtab.get(start..)?;
            let string = string.get(..LONGEST_NAME).unwrap_or(string);
            let found = CStr::from_bytes_until_nul(string).ok();
            steps::take(found.map_or(string.len(), CStr::count_bytes));
            found
        };
        let version = entry.version.and_then(string);
        Some(Symbol {
            name: string(entry.name)?,
            version,
            entry,
        })
    }

    /// Returns an entry of the table if it can be called: its value lies in the image, and its name
    /// begins in the string table.
    #[inline(always)]
    fn entry(&self, index: usize, symbol: Bytes<'_, F>) -> Option<Entry> {
        const SHN_UNDEF: u16 = 0;
        const SHN_ABS: u16 = 0xfff1;
        let st_info = symbol.byte(ST_INFO);
        let is_func = match st_info & 0xf {
            0 => false, // STT_NOTYPE
            2 => true,  // STT_FUNC
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
        let (value, size, name) = (
            symbol.addr(ST_VALUE),
            symbol.addr(ST_SIZE),
            symbol.word(ST_NAME),
        );
        if !self.load.contains(value) || name >= self.strtab.len() {
            return None;
        }
        let version = self.versions.name_of(symbol, index);
        Some(Entry {
            name,
            version,
            value,
            size,
            is_func,
            is_weak,
        })
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

/// Returns the number of symbols of an image without a hash table. In every linker script, the
/// string table follows the symbols.
#[cold]
#[inline(never)]
fn count_before<F: Format>(symbols: Bytes<'_, F>, strings: Bytes<'_, F>) -> u32 {
    let between = symbols.raw.len().saturating_sub(strings.raw.len());
    count_all(
        symbols
            .head(between)
            .filter(|_| between != 0)
            .unwrap_or(symbols),
    )
}

/// Returns the number of symbols in bytes of an image.
#[cold]
#[inline(never)]
fn count_all<F: Format>(symbols: Bytes<'_, F>) -> u32 {
    symbols
        .raw
        .len()
        .checked_div(symbols.of(SYM_SIZE))
        .unwrap_or(0) as u32
}

/// Cuts the string table after its last NUL, so that every string in it ends.
fn string_table(table: &[u8], size: u64) -> Option<&[u8]> {
    let size = usize::try_from(size).ok()?;
    let table = if size == 0 { table } else { table.get(..size)? };
    let last = table.iter().rposition(|&byte| {
        steps::take(1);
        byte == 0
    })?;
    table.get(..=last)
}
