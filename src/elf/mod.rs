//! The parser of ELF images: bytes in, symbols out.
//!
//! It reads images of any machine, class and byte order on any machine. It trusts no byte and has
//! no unsafe code. It reads what a loader reads: the program headers, `DT_SYMTAB`, `DT_STRTAB` and,
//! if present, the hash and version tables. It does not read section headers, because they need not
//! be in memory.
//!
//! The work is bounded for any bytes. A step is the read of a number or of one byte of a string.
//! There are at most
//!
//! - 3 steps for each byte in [`Image::parse`];
//! - 136 for each byte of the image in one [`Image::symbol`];
//! - 36 in the first call of any clock function, which looks up the symbols of all five;
//! - 134 in one step of [`Image::symbols`], and in all its steps together.
//!
//! A symbol has at least 16 bytes, and costs at most 86 numbers (6 of its own, 5 of each of 16
//! version definitions) and two strings. At most 1024 bytes of a string are read.

// The parser exists to make these impossible.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::unwrap_used, clippy::expect_used)]
#![deny(clippy::panic)]
// The CPU fetches cold code in one piece ahead of its use. A function elsewhere, as short as it may
// be, makes the first call slower. So only what the process's own image never needs is out of line.
#![allow(clippy::inline_always, reason = "copies of results are most of the work: parse takes half the time")]

mod error;
mod hash;
mod headers;
mod layout;
mod steps;
mod symbol;
mod version;

pub use error::ParseError;
pub use hash::HashTables;
pub(crate) use headers::ProgramHeaders;
use headers::{
    DT_GNU_HASH, DT_HASH, DT_STRSZ, DT_STRTAB, DT_SYMENT, DT_SYMTAB, DT_VERDEF, DT_VERDEFNUM, DT_VERSYM,
    Dynamic, Load,
};
pub(crate) use layout::{Any, Format, Native};
use layout::{Bytes, E_MACHINE, SYM_SIZE};
#[cfg(vdso_time_steps)]
pub(crate) use steps::TAKEN;
pub(crate) use symbol::Entry;
pub use symbol::{Symbol, SymbolKind, Symbols};
use version::Versions;

/// An ELF image: a vDSO, or a shared object with one segment.
///
/// It consists of the loaded segment, the part that a process has in memory. All tables must lie in
/// it.
#[derive(Clone, Copy, Debug)]
pub struct Image<'a> {
    pub(crate) parsed: ParsedImage<'a, Any>,
}

impl<'a> Image<'a> {
    /// Parses the headers and finds the tables. More bytes may follow the image.
    ///
    /// # Errors
    ///
    /// [`ParseError`] names the part that is missing, malformed or outside.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use vdso_time::elf::Image;
    ///
    /// let bytes = std::fs::read("vdso.so")?;
    /// for symbol in Image::parse(&bytes)?.symbols() {
    ///     println!("{:#x} {:?}", symbol.value(), symbol.name());
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        Self::with(
            || ProgramHeaders::<Native>::read(bytes)?.whole_image(bytes),
            || ProgramHeaders::<Any>::read(bytes)?.whole_image(bytes),
        )
    }

    /// Parses with the code for the format of this process, which is faster, or with that for any.
    #[inline(always)]
    pub(crate) fn with<T, E: From<ParseError> + PartialEq>(
        native: impl FnOnce() -> Result<T, E>,
        any: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        match native() {
            Err(error) if [ParseError::Class, ParseError::ByteOrder].map(E::from).contains(&error) => {
                foreign(any)
            }
            parsed => parsed,
        }
    }

    /// Returns the size of the image in bytes, at most 1 MiB. It reads only the first 4 KiB.
    ///
    /// It is the end of the loaded segment. If the program headers lie after that,
    /// [`Image::parse`] needs them too.
    ///
    /// # Errors
    ///
    /// [`ParseError`], if the headers are malformed.
    pub fn extent(head: &[u8]) -> Result<usize, ParseError> {
        Ok(ProgramHeaders::<Any>::read(head)?.extent())
    }

    /// Returns `e_machine`: 3 is i386, 40 arm, 62 `x86_64`, 183 aarch64.
    #[must_use]
    pub fn machine(&self) -> u16 {
        self.parsed.machine()
    }

    /// Returns `EI_CLASS`: 1 is `ELFCLASS32`, 2 is `ELFCLASS64`.
    #[must_use]
    pub fn class(&self) -> u8 {
        self.parsed.class()
    }

    /// Returns which hash tables the image has.
    #[must_use]
    pub const fn hash_tables(&self) -> HashTables {
        self.parsed.hash_tables
    }

    /// Returns `p_vaddr` of the loaded segment.
    ///
    /// It is 0 in Linux's images, but not if the image is prelinked (gVisor) or was relocated when
    /// it was loaded (QEMU).
    #[must_use]
    pub const fn load_address(&self) -> u64 {
        self.parsed.load.vaddr
    }

    /// Returns the symbols that can be called.
    ///
    /// These are `STT_FUNC` and `STT_NOTYPE`, `STB_GLOBAL` and `STB_WEAK`, defined in the image and
    /// not absolute. They include symbols whose name the kernel blanked (see
    /// `FallbackReason::BlankedNames`).
    #[must_use]
    pub const fn symbols(&self) -> Symbols<'a> {
        Symbols { image: self.parsed, next: 0 }
    }

    /// Returns the first of [`symbols()`](Self::symbols) with this name and version.
    ///
    /// Without a version, and in an image without versions, only the name counts. A blank name is
    /// never found.
    ///
    /// # Examples
    ///
    /// ```
    /// # use vdso_time::vdso::Vdso;
    /// # if let Ok(vdso) = Vdso::locate() {
    /// let image = vdso.image();
    /// if let Some(symbol) = image.symbol("__vdso_time", Some("LINUX_2.6")) {
    ///     assert_eq!(symbol.name(), c"__vdso_time");
    /// }
    /// assert!(image.symbol("__vdso_time", Some("LINUX_99")).is_none());
    /// # }
    /// ```
    #[must_use]
    pub fn symbol(&self, name: &str, version: Option<&str>) -> Option<Symbol<'a>> {
        self.parsed.symbol(self.find(name, version)?)
    }

    /// Finds an entry with the code for the image's format.
    #[inline]
    pub(crate) fn find(&self, name: &str, version: Option<&str>) -> Option<Entry> {
        match self.parsed.in_format::<Native>() {
            Some(native) => native.find(name, version),
            None => foreign(|| self.parsed.find(name, version)),
        }
    }
}

/// Calls the code for foreign images, which must not lie between that of a first call.
#[cold]
#[inline(never)]
fn foreign<T>(work: impl FnOnce() -> T) -> T {
    work()
}

/// The bytes and the tables of an image.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParsedImage<'a, F> {
    bytes: Bytes<'a, F>,
    load: Load,
    hash_tables: HashTables,
    symtab: &'a [u8],
    strtab: &'a [u8],
    versions: Versions<'a>,
}

impl<F: Format> ProgramHeaders<F> {
    /// Finds the tables of the image that has these headers. More bytes may follow it.
    #[inline(always)]
    fn whole_image(self, bytes: &[u8]) -> Result<Image<'_>, ParseError> {
        self.image(bytes.get(..self.extent()).ok_or(ParseError::Truncated)?)
    }

    /// Finds the tables of the image that has these headers, or fails if one may not end in these
    /// bytes, with which the image begins.
    #[inline(always)]
    pub(crate) fn image<'a>(&self, bytes: &'a [u8]) -> Result<Image<'a>, ParseError> {
        let Self { format, load, ref dynamic, machine } = *self;
        let bytes = Bytes { raw: bytes, format };
        let dynamic = bytes.raw.get(dynamic.clone()).ok_or(ParseError::NoDynamicSegment)?;
        let dynamic = Dynamic::read(bytes.with(dynamic));
        let segment = bytes.tail(load.start).ok_or(ParseError::Truncated)?;
        // The bytes from a table on. An address of 0 means that the table is missing.
        let table = |address: u64| {
            let offset = usize::try_from(address.wrapping_sub(load.vaddr)).unwrap_or(usize::MAX);
            segment.tail(offset).filter(|table| address != 0 && !table.raw.is_empty())
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
            table(hash).and_then(|hash| hash::count_sysv(hash, machine)).ok_or(ParseError::SysvHash)?
        } else if gnu_hash != 0 {
            table(gnu_hash).and_then(hash::count_gnu).ok_or(ParseError::GnuHash)?
        } else {
            count_before(symbols, from_strings)
        };
        let whole = symbols.first(count as usize, size);
        let is_open = strsz == 0 || (hash == 0 && gnu_hash == 0) || whole.is_none();
        if is_open && bytes.raw.len() < load.end() {
            return Err(ParseError::Truncated);
        }
        let (symtab, count) = match whole {
            Some(symtab) => (symtab, count),
            None => (symbols, count_all(symbols)),
        };
        let mut versions = Versions::default();
        if dynamic.get(DT_VERSYM) != 0 && dynamic.get(DT_VERDEF) != 0 {
            let versym = table(dynamic.get(DT_VERSYM)).and_then(|versym| versym.first(count as usize, 2));
            let versym = versym.ok_or(ParseError::Versions)?;
            let verdef = table(dynamic.get(DT_VERDEF)).ok_or(ParseError::Versions)?;
            let verdefnum = dynamic.get(DT_VERDEFNUM);
            version::find(verdef, verdefnum, version::NO_INDEX)?;
            versions = Versions { versym: versym.raw, verdef: verdef.raw, verdefnum };
        }
        let hash_tables = HashTables { sysv: hash != 0, gnu: gnu_hash != 0 };
        let symtab = symtab.raw;
        let bytes = bytes.in_format(format.get());
        Ok(Image { parsed: ParsedImage { bytes, load, hash_tables, symtab, strtab, versions } })
    }
}

impl<'a, F: Format> ParsedImage<'a, F> {
    /// Returns the same image for code that knows its format, or `None` if it has another.
    #[inline]
    pub(crate) fn in_format<G: Format>(self) -> Option<ParsedImage<'a, G>> {
        let Self { bytes, load, hash_tables, symtab, strtab, versions } = self;
        let bytes = bytes.in_format(G::new(bytes.format.get()).ok()?);
        Some(ParsedImage { bytes, load, hash_tables, symtab, strtab, versions })
    }

    pub(crate) fn machine(&self) -> u16 {
        self.bytes.half(E_MACHINE)
    }

    pub(crate) fn class(&self) -> u8 {
        if self.bytes.is_64_bit() { 2 } else { 1 }
    }

    pub(crate) fn has_versions(&self) -> bool {
        !self.versions.verdef.is_empty()
    }

    pub(crate) fn load_address(&self) -> u64 {
        self.load.vaddr
    }

    /// Returns the address, in the terms of a symbol's value, of the first byte. It wraps.
    pub(crate) fn origin(&self) -> u64 {
        self.load.origin()
    }

    pub(crate) fn base(&self) -> *const u8 {
        self.bytes.raw.as_ptr()
    }

    pub(crate) fn size(&self) -> usize {
        self.load.end()
    }

    /// Returns whether the code of an entry ends in the bytes that the tables were read from.
    #[inline]
    pub(crate) fn is_read(&self, entry: &Entry) -> bool {
        let end = entry.value.wrapping_sub(self.origin()).saturating_add(entry.size);
        end <= self.bytes.raw.len() as u64
    }
}

/// Returns the number of symbols of an image without a hash table. In every linker script, the
/// string table follows the symbols.
#[cold]
#[inline(never)]
fn count_before<F: Format>(symbols: Bytes<'_, F>, strings: Bytes<'_, F>) -> u32 {
    let between = symbols.raw.len().saturating_sub(strings.raw.len());
    count_all(symbols.head(between).filter(|_| between != 0).unwrap_or(symbols))
}

/// Returns the number of symbols in bytes of an image.
#[cold]
#[inline(never)]
fn count_all<F: Format>(symbols: Bytes<'_, F>) -> u32 {
    symbols.count(symbols.of(SYM_SIZE)) as u32
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
