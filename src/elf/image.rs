//! [`Image`]: the tables of an image, and its symbols.

use core::ffi::CStr;
use core::fmt;
use core::iter::FusedIterator;

use super::error::ParseError;
use super::hash;
use super::headers::{Dynamic, Load, ProgramHeaders};
use super::layout::{Bytes, E_MACHINE, ST_INFO, ST_NAME, ST_SHNDX, ST_SIZE, ST_VALUE, SYM_SIZE};
use super::symbol::Symbol;
use super::version::Versions;

/// No name is this long. The limit bounds the work for an image in which the name of every symbol
/// is the whole string table.
const LONGEST_NAME: usize = 1024;

/// An ELF image: a vDSO, or a shared object with one segment.
///
/// It consists of the loaded segment, the part that a process has in memory. All tables must lie in
/// it. Its class may be another one than this process's, but not its byte order.
#[derive(Clone, Copy)]
pub struct Image<'a> {
    /// The image, or a prefix of it that has all tables.
    bytes: Bytes<'a>,
    load: Load,
    symtab: Bytes<'a>,
    /// Ends with a NUL.
    strtab: &'a [u8],
    versions: Option<Versions<'a>>,
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
        let bytes = Bytes::of_image(bytes)?;
        let headers = ProgramHeaders::read(bytes)?;
        let image = bytes.head(headers.load.end());
        Self::with_tables(image.ok_or(ParseError::Truncated)?, &headers)
    }

    /// Parses an image that begins with these bytes. Fails if a table may go on after them, and
    /// succeeds only if [`Image::parse`] would find the same symbols in the whole image.
    pub(crate) fn parse_beginning(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let bytes = Bytes::of_image(bytes)?;
        let headers = ProgramHeaders::read(bytes)?;
        let known = bytes.head(headers.load.end()).unwrap_or(bytes);
        Self::with_tables(known, &headers)
    }

    /// Returns the size of the image in bytes, at most 1 MiB. It reads only the first 4 KiB.
    ///
    /// It is the end of the loaded segment. If the program headers lie after that,
    /// [`Image::parse`] needs them as well.
    ///
    /// # Errors
    ///
    /// [`ParseError`], if the headers are malformed.
    pub fn extent(head: &[u8]) -> Result<usize, ParseError> {
        let headers = ProgramHeaders::read(Bytes::of_image(head)?)?;
        Ok(headers.load.end())
    }

    /// Finds the tables of an image that begins with `known`. Fails if a table may go on after it.
    fn with_tables(known: Bytes<'a>, headers: &ProgramHeaders) -> Result<Self, ParseError> {
        let load = headers.load;
        let section = known.raw.get(headers.dynamic.clone());
        let section = section.ok_or(ParseError::NoDynamicSegment)?;
        let dynamic = Dynamic::read(known.with(section));

        let strings = load.table(known, dynamic.strtab);
        let strings = strings.ok_or(ParseError::StringTable)?;
        if dynamic.strsz == 0 && known.raw.len() < load.end() {
            return Err(ParseError::Truncated); // the rest of the image is the string table
        }
        let strtab = string_table(strings.raw, dynamic.strsz).ok_or(ParseError::StringTable)?;

        let symbols = load.table(known, dynamic.symtab);
        let symbols = symbols.ok_or(ParseError::SymbolTable)?;
        let size = symbols.of(SYM_SIZE);
        if dynamic.syment != 0 && dynamic.syment != size as u64 {
            return Err(ParseError::SymbolTable);
        }
        let count = symbol_count(known, load, &dynamic, symbols, strings)?;
        let symtab = symbols.first(count, size).ok_or(ParseError::SymbolTable)?;

        let mut versions = None;
        if dynamic.versym != 0 && dynamic.verdef != 0 {
            let versym = load.table(known, dynamic.versym);
            let versym = versym.and_then(|versym| versym.first(count, 2));
            let verdef = load.table(known, dynamic.verdef);
            versions = Some(Versions::new(
                versym.ok_or(ParseError::Versions)?,
                verdef.ok_or(ParseError::Versions)?,
                dynamic.verdefnum,
            )?);
        }
        Ok(Self {
            bytes: known,
            load,
            symtab,
            strtab,
            versions,
        })
    }

    /// Returns `e_machine`: 3 is i386, 40 arm, 62 `x86_64`, 183 aarch64.
    #[must_use]
    pub fn machine(&self) -> u16 {
        self.bytes.half(E_MACHINE)
    }

    /// Returns `EI_CLASS`: 1 is `ELFCLASS32`, 2 is `ELFCLASS64`.
    #[must_use]
    pub fn class(&self) -> u8 {
        self.bytes.class()
    }

    /// Returns `p_vaddr` of the loaded segment.
    ///
    /// It is 0 in Linux's images, but not if the image is prelinked (gVisor) or was relocated when
    /// it was loaded (QEMU).
    #[must_use]
    pub fn load_address(&self) -> u64 {
        self.load.vaddr
    }

    /// Returns the symbols that can be called.
    ///
    /// These are `STT_FUNC` and `STT_NOTYPE`, `STB_GLOBAL` and `STB_WEAK`, defined in the image and
    /// not absolute. They include symbols whose name the kernel blanked (see
    /// `FallbackReason::BlankedNames`).
    #[must_use]
    pub fn symbols(self) -> impl FusedIterator<Item = Symbol<'a>> + Clone {
        let entries = self.symtab.table(self.symtab.of(SYM_SIZE)).enumerate();
        entries
            .filter_map(move |(index, entry)| self.callable(index, entry))
            .fuse()
    }

    /// Returns the first of [`symbols()`](Self::symbols) with this name and version.
    ///
    /// Without a version, and in an image without versions, only the name counts. A blank name is
    /// never found.
    #[must_use]
    pub fn symbol(&self, name: &str, version: Option<&str>) -> Option<Symbol<'a>> {
        if name.is_empty() || name.len() >= LONGEST_NAME {
            return None;
        }
        // In a debug build a loop takes less stack than closures.
        for (index, entry) in self.symtab.table(self.symtab.of(SYM_SIZE)).enumerate() {
            // Most entries have another name, so this comes first.
            if !self.has_name(entry, name.as_bytes()) {
                continue;
            }
            let Some(symbol) = self.callable(index, entry) else {
                continue;
            };
            // The image's name ends where `name` has a NUL.
            if symbol.name.count_bytes() == name.len() && self.is_version(symbol, version) {
                return Some(symbol);
            }
        }
        None
    }

    /// Returns whether the bytes of an entry's name are these, and a NUL follows.
    fn has_name(&self, entry: Bytes<'_>, name: &[u8]) -> bool {
        let start = entry.word(ST_NAME);
        let end = start.saturating_add(name.len());
        // The end is compared first, because it differs in most names.
        if self.strtab.get(end) != Some(&0) {
            return false;
        }
        let bytes = self.strtab.get(start..end).unwrap_or_default();
        is_same(bytes, name)
    }

    /// Returns whether a look-up for this version finds the symbol.
    fn is_version(&self, symbol: Symbol<'_>, wanted: Option<&str>) -> bool {
        let Some(wanted) = wanted else {
            return true;
        };
        match symbol.version {
            Some(version) => is_same(version.to_bytes(), wanted.as_bytes()),
            None => !self.has_versions(),
        }
    }

    /// Returns the symbol of an entry if it can be called.
    fn callable(&self, index: usize, entry: Bytes<'a>) -> Option<Symbol<'a>> {
        const SHN_UNDEF: u16 = 0;
        const SHN_ABS: u16 = 0xfff1;
        let st_info = entry.byte(ST_INFO);
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
        if matches!(entry.half(ST_SHNDX), SHN_UNDEF | SHN_ABS) {
            return None;
        }
        let value = entry.addr(ST_VALUE);
        if !self.load.contains(value) {
            return None;
        }
        Some(Symbol {
            name: self.string(entry.word(ST_NAME))?,
            version: self.version(index),
            value,
            size: entry.addr(ST_SIZE),
            is_func,
            is_weak,
        })
    }

    /// Returns the name of the version of the entry with this index.
    fn version(&self, index: usize) -> Option<&'a CStr> {
        let start = self.versions?.name_of(index)?;
        self.string(start)
    }

    /// Returns the string at this offset of the string table, unless it is too long.
    fn string(&self, start: usize) -> Option<&'a CStr> {
        let rest = self.strtab.get(start..)?;
        let string = rest.get(..LONGEST_NAME).unwrap_or(rest);
        CStr::from_bytes_until_nul(string).ok()
    }

    /// Returns the size of the image in bytes.
    pub(crate) fn size(&self) -> usize {
        self.load.end()
    }

    /// Returns where the image begins.
    pub(crate) fn base(&self) -> *const u8 {
        self.bytes.raw.as_ptr()
    }

    /// Returns the address of a symbol's code, if the image lies at `base`.
    pub(crate) fn address(&self, symbol: &Symbol<'_>, base: usize) -> usize {
        base.wrapping_add(symbol.value.wrapping_sub(self.origin()) as usize)
    }

    /// Returns the value that a symbol at the image's first byte would have. It wraps.
    pub(crate) fn origin(&self) -> u64 {
        self.load.origin()
    }

    /// Returns whether the symbols have versions.
    pub(crate) fn has_versions(&self) -> bool {
        self.versions.is_some()
    }

    /// Returns whether a function's name is blank.
    pub(crate) fn has_blanked_names(self) -> bool {
        self.symbols()
            .any(|symbol| symbol.is_func && symbol.name.is_empty())
    }

    /// Returns the symbol whose code contains an address, a global one rather than its weak alias.
    pub(crate) fn symbol_at(&self, address: u64) -> Option<Symbol<'a>> {
        let address = self.code_address(address);
        let contains = |symbol: &Symbol<'_>| {
            let inside = address.wrapping_sub(self.code_address(symbol.value));
            inside < symbol.size.max(1)
        };
        self.symbols()
            .filter(contains)
            .min_by_key(|symbol| symbol.is_weak)
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
}

impl fmt::Debug for Image<'_> {
    /// Writes where the image is, and no bytes of it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Image({} bytes at {:p})", self.size(), self.base())
    }
}

/// Compares byte by byte, because `==` calls `bcmp`, which a C program without libc lacks.
fn is_same(bytes: &[u8], name: &[u8]) -> bool {
    bytes.iter().eq(name)
}

/// Returns the number of symbols of an image that begins with `known`. Fails if symbols may follow
/// after `known`.
///
/// No field has this number. An example is the image of Linux 6.18 for x86_64:
///
/// ```text
/// 0x0120  DT_HASH       nbucket 3, nchain 14
/// 0x0170  DT_GNU_HASH   its chains begin with the symbols 1, 7 and 10; the last has 4 hashes
/// 0x01d0  DT_SYMTAB     symbols of 24 bytes
/// 0x0320  DT_STRTAB     DT_STRSZ 204
/// 0x03ec  DT_VERSYM     2 bytes for each symbol
/// 0x0408  DT_VERDEF     2 definitions
/// 0x0440  PT_DYNAMIC
/// 0x0810  code
/// 0x1522  the end
/// ```
///
/// - `DT_HASH` has a chain word for each symbol, so there are `nchain` symbols: 14.
/// - `DT_GNU_HASH` sorts the symbols by chain, so the last chain ends with the last symbol: 10 + 4.
/// - Without both, the symbols end where the strings begin, because the string table follows the
///   symbol table in every linker script: (0x320 - 0x1d0) / 24 = 14. If the strings come first, the
///   symbols end with the image.
///
/// The tables of this image lie in its first page, and its hash table says so: 14 symbols fit
/// between 0x1d0 and 0x1000. Without a hash table, symbols may follow in the next page, and if the
/// hash table counted 200 symbols, they would.
fn symbol_count(
    known: Bytes<'_>,
    load: Load,
    dynamic: &Dynamic,
    symbols: Bytes<'_>,
    strings: Bytes<'_>,
) -> Result<usize, ParseError> {
    let mut count = None;
    if dynamic.hash != 0 {
        let table = load.table(known, dynamic.hash);
        count = table.and_then(|table| hash::count_sysv(table, known.half(E_MACHINE)));
        if count.is_none() {
            return Err(ParseError::SysvHash);
        }
    } else if dynamic.gnu_hash != 0 {
        let table = load.table(known, dynamic.gnu_hash);
        count = table.and_then(hash::count_gnu);
        if count.is_none() {
            return Err(ParseError::GnuHash);
        }
    }
    let size = symbols.of(SYM_SIZE);
    let room = symbols.raw.len().checked_div(size).unwrap_or(0);
    match count {
        Some(count) if count <= room => Ok(count),
        _ if known.raw.len() < load.end() => Err(ParseError::Truncated),
        Some(_) => Ok(room),
        None => {
            let between = symbols.raw.len().saturating_sub(strings.raw.len());
            let before_strings = between.checked_div(size).unwrap_or(0);
            Ok(if between == 0 { room } else { before_strings })
        }
    }
}

/// Cuts the string table after its last NUL, so that every string in it ends. `size` is 0 if the
/// table has the rest of the image.
fn string_table(table: &[u8], size: u64) -> Option<&[u8]> {
    let size = usize::try_from(size).ok()?;
    let table = if size == 0 { table } else { table.get(..size)? };
    let last = table.iter().rposition(|&byte| byte == 0)?;
    table.get(..=last)
}
