//! The walker: an ELF image as bytes in, symbols as offsets out. It reads any machine's image on any machine
//! (both classes, both byte orders), believes nothing, and has no unsafe code.
//!
//! What it needs of an image is what a loader needs: program headers, and the dynamic section's
//! `DT_SYMTAB` and `DT_STRTAB`. Section headers are never read, for nothing says that they are in memory.
//!
//! ```no_run
//! use vdso_time::elf::Image;
//!
//! let bytes = std::fs::read("vdso.so")?;
//! let image = Image::parse(&bytes)?;
//! for symbol in image.symbols() {
//!     println!("{:#x} {:?}", symbol.value(), symbol.name());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// The point of the walker is that these cannot happen.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::unwrap_used, clippy::expect_used)]
#![deny(clippy::panic)]

mod dynamic;
mod hash;
mod layout;
mod symbol;
mod version;

use core::ffi::CStr;

pub use crate::error::ParseError;
use dynamic::{Load, Tables, segments};
pub use hash::HashTables;
use layout::Bytes;
pub use symbol::{Symbol, SymbolKind, Symbols};
use version::Versions;

/// An ELF image: a vDSO, or a shared object of one segment.
///
/// Only the segment that is loaded is looked at, and every table must lie in it: that is the part that a
/// process has in memory.
///
/// ```
/// use vdso_time::vdso::Vdso;
///
/// if let Ok(vdso) = Vdso::locate() {
///     let image = vdso.image()?;
///     assert_eq!(image.symbols().count() > 0, image.symbols().next().is_some());
/// }
/// # Ok::<(), vdso_time::elf::ParseError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Image<'a> {
    bytes: Bytes<'a>,
    machine: u16,
    load: Load,
    hash_tables: HashTables,
    symtab: usize,
    count: usize,
    strtab: &'a [u8],
    versions: Option<Versions<'a>>,
}

impl<'a> Image<'a> {
    /// Reads the headers and finds the tables. The bytes may go on behind the image.
    ///
    /// # Errors
    /// [`ParseError`] names the part that is missing, malformed or outside.
    ///
    /// ```
    /// use vdso_time::elf::{Image, ParseError};
    ///
    /// assert_eq!(Image::parse(b"").unwrap_err(), ParseError::NotElf);
    /// assert_eq!(Image::parse(b"\x7fELF\x02\x01").unwrap_err(), ParseError::ProgramHeaders);
    /// ```
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let whole = Bytes::new(bytes)?;
        let (load, dynamic) = segments(whole)?;
        let bytes = whole.first(load.extent()?).ok_or(ParseError::Truncated)?;
        let tables = Tables::new(bytes, dynamic);

        let strtab = string_table(bytes, load, &tables).ok_or(ParseError::StringTable)?;
        let symtab = tables.symtab.and_then(|address| load.offset_of(address));
        let symtab = symtab.ok_or(ParseError::SymbolTable)?;
        if tables.syment.is_some_and(|size| size != bytes.layout.sym_size as u64) {
            return Err(ParseError::SymbolTable);
        }
        let count = hash::count(bytes, load, &tables, symtab)?;
        let versions = match (tables.versym, tables.verdef) {
            (Some(versym), Some(verdef)) => {
                let tables =
                    load.offset_of(versym).zip(load.offset_of(verdef)).and_then(|(versym, verdef)| {
                        Versions::new(bytes, versym, count, verdef, tables.verdefnum, strtab.len())
                    });
                Some(tables.ok_or(ParseError::Versions)?)
            }
            _ => None,
        };
        Ok(Self {
            bytes,
            machine: bytes.machine().ok_or(ParseError::Truncated)?,
            load,
            hash_tables: HashTables::of(&tables),
            symtab,
            count,
            strtab,
            versions,
        })
    }

    /// How many bytes from its start the image takes, judged from no more than its first 4 KiB: what
    /// [`Image::parse`] needs, at most 1 MiB.
    ///
    /// # Errors
    /// [`ParseError`], as [`Image::parse`] would say of the headers.
    ///
    /// ```
    /// use vdso_time::elf::{Image, ParseError};
    ///
    /// assert_eq!(Image::extent(&[0; 4096]), Err(ParseError::NotElf));
    /// ```
    pub fn extent(head: &[u8]) -> Result<usize, ParseError> {
        let (load, _) = segments(Bytes::new(head)?)?;
        load.extent()
    }

    /// `e_machine`: 3 is i386, 40 arm, 62 `x86_64`, 183 aarch64.
    #[must_use]
    pub const fn machine(&self) -> u16 {
        self.machine
    }

    /// `EI_CLASS`: 1 is `ELFCLASS32`, 2 is `ELFCLASS64`.
    #[must_use]
    pub fn class(&self) -> u8 {
        self.bytes.class()
    }

    /// Which hash tables the image has.
    #[must_use]
    pub const fn hash_tables(&self) -> HashTables {
        self.hash_tables
    }

    /// `p_vaddr` of the loaded segment: 0 in Linux's images; not 0 if the image is prelinked (gVisor), or was
    /// relocated as it was loaded (QEMU).
    #[must_use]
    pub const fn load_address(&self) -> u64 {
        self.load.vaddr
    }

    /// Where the image has its first byte, as an address like a symbol's value: a value minus this is an
    /// offset from the image's start. It wraps.
    pub(crate) fn origin(&self) -> u64 {
        self.load.vaddr.wrapping_sub(self.load.offset as u64)
    }

    /// How many bytes the image has.
    pub(crate) fn size(&self) -> usize {
        self.bytes.raw.len()
    }

    /// The symbols that can be called: `STT_FUNC` and `STT_NOTYPE`, `STB_GLOBAL` and `STB_WEAK`, defined in the
    /// image and not absolute. One whose name is blank (see [`Quirk::BlankedNames`](crate::arch::Quirk)) is
    /// among them.
    #[must_use]
    pub const fn symbols(&self) -> Symbols<'a> {
        Symbols::new(*self)
    }

    /// The first of [`symbols()`](Self::symbols) with this name and, if one is given, this version. An image without
    /// version tables has no versions to compare: there the name alone decides. A blank name is never found.
    ///
    /// ```
    /// # use vdso_time::vdso::Vdso;
    /// # if let Ok(vdso) = Vdso::locate() {
    /// let image = vdso.image()?;
    /// if let Some(symbol) = image.symbol("__vdso_time", Some("LINUX_2.6")) {
    ///     assert_eq!(symbol.name(), c"__vdso_time");
    /// }
    /// assert!(image.symbol("__vdso_time", Some("LINUX_99")).is_none());
    /// # }
    /// # Ok::<(), vdso_time::elf::ParseError>(())
    /// ```
    #[must_use]
    pub fn symbol(&self, name: &str, version: Option<&str>) -> Option<Symbol<'a>> {
        (0..self.count).find_map(|index| {
            let entry = self.entry(index)?;
            let found = self.string_is(entry.name, name) && self.version_matches(index, version);
            found.then(|| self.name_entry(index, entry)).flatten()
        })
    }

    /// The symbol whose code has the byte of this address (a value, not a pointer), a global one rather than
    /// its weak alias.
    pub(crate) fn symbol_at(&self, address: u64) -> Option<Symbol<'a>> {
        let around = |symbol: &Symbol<'_>| {
            let start = self.code_address(symbol.value());
            address.wrapping_sub(start) < symbol.size().max(1)
        };
        let symbols = || self.symbols().filter(around);
        symbols().find(|symbol| !symbol.is_weak()).or_else(|| symbols().next())
    }

    /// Where a symbol's code begins: on arm, bit 0 of the value says that it is Thumb code.
    fn code_address(&self, value: u64) -> u64 {
        const EM_ARM: u16 = 40;
        if self.machine == EM_ARM { value & !1 } else { value }
    }

    /// Whether a function's name is blank.
    pub(crate) fn has_blanked_names(&self) -> bool {
        (0..self.count)
            .filter_map(|index| self.entry(index))
            .any(|entry| entry.kind == SymbolKind::Func && self.strtab.get(entry.name) == Some(&0))
    }

    /// Whether the string at `at` is exactly `wanted`, which a blank name, or one with a NUL in it, never is.
    fn string_is(&self, at: usize, wanted: &str) -> bool {
        let ends = at.checked_add(wanted.len()).and_then(|end| self.strtab.get(end)) == Some(&0);
        ends && !wanted.is_empty()
            && !wanted.contains('\0')
            && self.strtab.get(at..).is_some_and(|string| string.starts_with(wanted.as_bytes()))
    }

    /// The string at `at`; every one ends, for the table was cut behind its last NUL.
    fn string(&self, at: usize) -> Option<&'a CStr> {
        CStr::from_bytes_until_nul(self.strtab.get(at..)?).ok()
    }

    /// Whether symbol `index` has this version, where versions are asked for and known.
    fn version_matches(&self, index: usize, wanted: Option<&str>) -> bool {
        let (Some(wanted), Some(versions)) = (wanted, self.versions) else { return true };
        let index = versions.index_of(index);
        let mut of_symbol = versions.definitions().filter(|definition| Some(definition.index) == index);
        of_symbol.next().is_some_and(|definition| self.string_is(definition.name, wanted))
    }

    /// The name of the version of symbol `index`.
    fn version_of(&self, index: usize) -> Option<&'a CStr> {
        let versions = self.versions?;
        let index = versions.index_of(index)?;
        let definition = versions.definitions().find(|definition| definition.index == index)?;
        self.string(definition.name)
    }
}

/// `DT_STRTAB`, cut behind its last NUL, so that every string in it ends.
fn string_table<'a>(bytes: Bytes<'a>, load: Load, tables: &Tables) -> Option<&'a [u8]> {
    let table = bytes.raw.get(load.offset_of(tables.strtab?)?..)?;
    let table = match tables.strsz {
        Some(size) => table.get(..usize::try_from(size).ok()?)?,
        None => table,
    };
    let last = table.iter().rposition(|&byte| byte == 0)?;
    table.get(..=last)
}
