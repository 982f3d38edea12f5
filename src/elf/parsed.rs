//! An image whose tables are found, in a format that is known at compile time or only at run time.

use core::ffi::CStr;

use super::dynamic::{Load, ProgramHeaders, Span, Tables};
use super::layout::{Bytes, Format, ST_NAME};
use super::version::Definitions;
use super::{HashTables, ParseError, Symbol, SymbolKind, hash, steps};

/// The bytes of an image, and the offsets of its tables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParsedImage<'a, F> {
    bytes: Bytes<'a, F>,
    load: Load,
    hash_tables: HashTables,
    symtab: Span,
    strtab: Span,
    versions: Option<Versions>,
}

/// The two tables of versions; the second is as long as its definitions say.
#[derive(Clone, Copy, Debug)]
struct Versions {
    versym: usize,
    verdef: usize,
    verdefnum: u64,
}

/// An entry of the symbol table that can be called.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    index: usize,
    /// Where the name begins in the string table, and where the version's does.
    name: usize,
    version: Option<usize>,
    pub(crate) value: u64,
    size: u64,
    kind: SymbolKind,
    weak: bool,
}

/// No name comes near this. Without a limit, a hostile image could give each symbol the whole string table to read.
const LONGEST_NAME: usize = 1024;

impl<'a, F: Format> ParsedImage<'a, F> {
    /// Finds the tables of an image whose headers are read.
    pub(crate) fn parse(bytes: &'a [u8], headers: ProgramHeaders<F>) -> Result<Self, ParseError> {
        let ProgramHeaders { format, load, dynamic } = headers;
        let bytes = Bytes { raw: bytes, format }.head(load.end).ok_or(ParseError::Truncated)?;
        let dynamic = dynamic.of(bytes).ok_or(ParseError::NoDynamicSegment)?;
        let tables = Tables::new(dynamic);

        let strtab = string_table(bytes, load, &tables).ok_or(ParseError::StringTable)?;
        let symtab = load.offset_of(tables.symtab).ok_or(ParseError::SymbolTable)?;
        let sym_size = bytes.layout().sym_size;
        if tables.symtab == 0 || (tables.syment != 0 && tables.syment != sym_size as u64) {
            return Err(ParseError::SymbolTable);
        }
        let count = hash::count(bytes, load, &tables, symtab)?;
        let versions = if tables.versym == 0 || tables.verdef == 0 {
            None
        } else {
            Some(versions(bytes, load, &tables, count).ok_or(ParseError::Versions)?)
        };
        Ok(Self {
            bytes,
            load,
            hash_tables: HashTables { sysv: tables.hash != 0, gnu: tables.gnu_hash != 0 },
            symtab: Span { start: symtab, end: symtab.saturating_add(count.saturating_mul(sym_size)) },
            strtab,
            versions,
        })
    }

    pub(crate) fn machine(&self) -> u16 {
        self.bytes.machine()
    }

    pub(crate) fn class(&self) -> u8 {
        self.bytes.layout().class
    }

    pub(crate) fn hash_tables(&self) -> HashTables {
        self.hash_tables
    }

    pub(crate) fn has_versions(&self) -> bool {
        self.versions.is_some()
    }

    pub(crate) fn load_address(&self) -> u64 {
        self.load.vaddr
    }

    /// The address, like a symbol's value, of the image's first byte. It wraps.
    pub(crate) fn origin(&self) -> u64 {
        self.load.origin()
    }

    /// Where the image begins.
    pub(crate) fn base(&self) -> *const u8 {
        self.bytes.raw.as_ptr()
    }

    /// How many bytes the image has.
    pub(crate) fn size(&self) -> usize {
        self.bytes.raw.len()
    }

    /// The entries of the symbol table, by name. Whether one can be called is not checked yet.
    pub(crate) fn raw_entries(&self) -> impl Iterator<Item = RawEntry<'_, 'a, F>> {
        let strtab = self.strtab().unwrap_or_default();
        let raw = move |(index, symbol)| RawEntry { image: self, strtab, index, symbol };
        self.table(0).enumerate().map(raw)
    }

    /// The first entry with this name and version that can be called. A name of 1024 bytes or more is
    /// not compared: every symbol might begin with it.
    pub(crate) fn find(&self, name: &str, version: Option<&str>) -> Option<Entry> {
        let is_short = |string: &str| string.len() < LONGEST_NAME;
        if !is_short(name) || !version.is_none_or(is_short) {
            return None;
        }
        let mut named = self.raw_entries().filter(|raw| raw.is_named(name));
        named.find_map(|raw| raw.entry(version))
    }

    /// The entries that can be called, from one of the table's on.
    pub(crate) fn entries(&self, first: usize) -> impl Iterator<Item = Entry> {
        let image = *self;
        let entry = move |(symbol, index)| image.entry(index, symbol);
        self.table(first).zip(first..).filter_map(entry)
    }

    /// The entry whose code has the byte of this address, a global one rather than its weak alias.
    pub(crate) fn at(&self, address: u64) -> Option<Entry> {
        let address = self.code_address(address);
        let around = |entry: &Entry| {
            let inside = address.wrapping_sub(self.code_address(entry.value));
            inside < entry.size.max(1)
        };
        let mut weak = None;
        for entry in self.entries(0).filter(around) {
            if !entry.weak {
                return Some(entry);
            }
            weak = weak.or(Some(entry));
        }
        weak
    }

    /// Where a symbol's code begins: on arm, bit 0 of the value says that it is Thumb code.
    fn code_address(&self, value: u64) -> u64 {
        const EM_ARM: u16 = 40;
        if self.machine() == EM_ARM { value & !1 } else { value }
    }

    /// Whether a function's name is blank.
    pub(crate) fn has_blanked_names(&self) -> bool {
        let Some(strtab) = self.strtab() else { return false };
        self.entries(0).any(|entry| entry.kind == SymbolKind::Func && strtab.get(entry.name) == Some(&0))
    }

    /// Adds the strings, the only part of a symbol whose reading takes more than a few steps.
    pub(crate) fn symbol(&self, entry: Entry) -> Option<Symbol<'a>> {
        let strtab = self.strtab()?;
        let string = |start| {
            let string = strtab.get(start..)?;
            let string = string.get(..LONGEST_NAME).unwrap_or(string);
            let found = CStr::from_bytes_until_nul(string).ok();
            steps::take(found.map_or(string.len(), CStr::count_bytes));
            found
        };
        let Entry { index, name, version, value, size, kind, weak } = entry;
        let version = version.and_then(string);
        Some(Symbol { name: string(name)?, version, value, size, kind, weak, index })
    }

    /// Entry `index` of the symbol table, if it can be called, its value lies in the image and its name begins in the
    /// string table.
    #[inline(never)]
    fn entry(&self, index: usize, symbol: Bytes<'_, F>) -> Option<Entry> {
        const SHN_UNDEF: u16 = 0;
        const SHN_ABS: u16 = 0xfff1;
        let layout = symbol.layout();
        let st_info = symbol.byte(layout.st_info);
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
        if matches!(symbol.half(layout.st_shndx), SHN_UNDEF | SHN_ABS) {
            return None;
        }
        let (value, size) = (symbol.addr(layout.st_value), symbol.addr(layout.st_size));
        self.load.offset_of(value)?;
        let name = symbol.word(ST_NAME);
        (name < self.strtab.size()).then(|| Entry {
            index,
            name,
            version: self.version(index),
            value,
            size,
            kind,
            weak,
        })
    }

    /// The symbol table, from one of its symbols on.
    fn table(&self, first: usize) -> impl Iterator<Item = Bytes<'a, F>> + use<'a, F> {
        let size = self.bytes.layout().sym_size;
        let table = self.symtab.of(self.bytes).and_then(|table| table.behind(first, size));
        table.unwrap_or(Bytes { raw: &[], ..self.bytes }).table(size)
    }

    /// The string table.
    fn strtab(&self) -> Option<&'a [u8]> {
        Some(self.strtab.of(self.bytes)?.raw)
    }

    /// Where the name of the version of symbol `index` begins in the string table.
    fn version(&self, index: usize) -> Option<usize> {
        let versions = self.versions?;
        let versym = self.bytes.half(versions.versym.checked_add(index.checked_mul(2)?)?);
        versions.definitions(self.bytes)?.find(versym).ok()?
    }
}

/// An entry of the symbol table that is looked at by name.
pub(crate) struct RawEntry<'i, 'a, F> {
    image: &'i ParsedImage<'a, F>,
    strtab: &'a [u8],
    index: usize,
    symbol: Bytes<'a, F>,
}

impl<F: Format> RawEntry<'_, '_, F> {
    /// Whether this is its name. A blank name never is.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        string_is(self.strtab, self.symbol.word(ST_NAME), name)
    }

    /// The entry, if it can be called and has this version. In an image without versions every entry has.
    pub(crate) fn entry(&self, version: Option<&str>) -> Option<Entry> {
        let entry = self.image.entry(self.index, self.symbol)?;
        let wanted = version.filter(|_| self.image.has_versions());
        let has = |wanted| entry.version.is_some_and(|start| string_is(self.strtab, start, wanted));
        wanted.is_none_or(has).then_some(entry)
    }
}

/// Whether the string at `start` is exactly `wanted`, which a blank name, or one with a NUL in it, never is.
fn string_is(strtab: &[u8], start: usize, wanted: &str) -> bool {
    let Some(string) = strtab.get(start..) else { return false };
    let same = |(wanted, byte): (u8, &u8)| {
        steps::take(1);
        wanted == *byte && wanted != 0
    };
    // Its end first: that tells most names apart.
    !wanted.is_empty() && string.get(wanted.len()) == Some(&0) && wanted.bytes().zip(string).all(same)
}

/// `DT_STRTAB`, cut behind its last NUL, so that every string in it ends.
fn string_table<F: Format>(bytes: Bytes<'_, F>, load: Load, tables: &Tables) -> Option<Span> {
    let offset = load.offset_of(tables.strtab).filter(|_| tables.strtab != 0)?;
    let table = bytes.tail(offset)?;
    let size = usize::try_from(tables.strsz).ok()?;
    let table = if size == 0 { table } else { table.head(size)? };
    let last = table.raw.iter().rposition(|&byte| {
        steps::take(1);
        byte == 0
    })?;
    Some(Span { start: offset, end: offset.checked_add(last)?.checked_add(1)? })
}

/// `DT_VERSYM`, for so many symbols, and `DT_VERDEF`.
fn versions<F: Format>(bytes: Bytes<'_, F>, load: Load, tables: &Tables, symbols: usize) -> Option<Versions> {
    let versym = load.offset_of(tables.versym)?;
    bytes.tail(versym)?.first(symbols, 2)?;
    let versions = Versions { versym, verdef: load.offset_of(tables.verdef)?, verdefnum: tables.verdefnum };
    versions.definitions(bytes)?.find(0).ok()?;
    Some(versions)
}

impl Versions {
    fn definitions<F: Format>(self, bytes: Bytes<'_, F>) -> Option<Definitions<'_, F>> {
        Some(Definitions { table: bytes.tail(self.verdef)?, count: self.verdefnum })
    }
}
