//! [`Image`]: the tables of an image, and its symbols.

use core::ffi::CStr;
use core::fmt;
use core::iter::FusedIterator;

use super::error::ParseError;
use super::hash;
use super::headers::{Dynamic, Load, ProgramHeaders};
use super::layout::{Bytes, E_MACHINE, ST_INFO, ST_NAME, ST_SHNDX, ST_VALUE, SYM_SIZE};
use super::symbol::Symbol;
use super::version::Versions;

/// No name in a vDSO is this long. The limit bounds the work for an image in which the name of
/// every symbol is the whole string table.
const LONGEST_NAME: usize = 1024;

// The types of symbols that can be code, in the lower 4 bits of `st_info`. On some architectures,
// functions in assembly are `STT_NOTYPE`.
const STT_NOTYPE: u8 = 0;
const STT_FUNC: u8 = 2;

// The bindings of symbols that other objects see, in the upper 4 bits of `st_info`. On x86_64, the
// aliases without the prefix `__vdso_` are weak.
const STB_GLOBAL: u8 = 1;
const STB_WEAK: u8 = 2;

/// An ELF image: a vDSO, or a shared object with one segment.
///
/// The image ends where its loaded segment ends. This segment is the part that a process has in
/// memory, and all tables must lie in it. The class of an image can differ from this process's
/// class, but its byte order cannot.
#[derive(Clone, Copy)]
pub struct Image<'a> {
    /// The image, or a prefix of it that contains all tables.
    bytes: Bytes<'a>,
    load: Load,
    // The tables are slices, because each `Bytes` would repeat the class.
    symtab: &'a [u8],
    /// Ends with a NUL.
    strtab: &'a [u8],
    versions: Option<Versions<'a>>,
}

impl<'a> Image<'a> {
    /// Parses the image at the start of `bytes`: its headers, and where its tables are. More bytes
    /// may follow the image.
    ///
    /// # Errors
    ///
    /// [`ParseError`] names the part that is missing, malformed or outside of the image.
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
        if bytes.len() < Self::extent(bytes)? {
            return Err(ParseError::Truncated);
        }
        Self::parse_beginning(bytes)
    }

    /// Returns the size of the image in bytes, at most 1 MiB. This function reads only the first
    /// 4 KiB of `head`.
    ///
    /// The image ends where the loaded segment ends. If the program headers lie after this end,
    /// [`Image::parse`] needs more bytes than this size, up to the end of the program headers.
    ///
    /// # Errors
    ///
    /// [`ParseError`], if the headers are malformed.
    pub fn extent(head: &[u8]) -> Result<usize, ParseError> {
        let headers = ProgramHeaders::read(Bytes::of_image(head)?)?;
        Ok(headers.load.image_size())
    }

    /// Parses an image from its first bytes. `bytes` need not contain the whole image, but this
    /// function fails if a table could continue after the end of `bytes`. So `bytes` must contain:
    ///
    /// - the whole dynamic section;
    /// - `DT_STRSZ` bytes of strings or, without `DT_STRSZ`, the whole image;
    /// - a hash table and as many symbols as it counts or, without a hash table, the whole image;
    /// - all definitions of versions, because [`Versions::new`] reads every one.
    ///
    /// If this function succeeds, it has found all symbols of the image.
    #[inline]
    pub(crate) fn parse_beginning(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let bytes = Bytes::of_image(bytes)?;
        let ProgramHeaders { load, dynamic } = ProgramHeaders::read(bytes)?;
        // The part of the image that these bytes contain.
        let known = bytes.head(load.image_size()).unwrap_or(bytes);
        let section = known.raw.get(dynamic);
        // The dynamic section lies within the image. So if `known` does not contain it, `known`
        // ends before the image does.
        let section = section.ok_or(ParseError::Truncated)?;
        let dynamic = Dynamic::read(known.with(section));

        let strings = load.bytes_at(known, dynamic.strtab);
        let strings = strings.ok_or(ParseError::StringTable)?;
        if dynamic.strsz == 0 && known.raw.len() < load.image_size() {
            return Err(ParseError::Truncated); // the string table extends to the end
        }
        // `strtab` ends where the strings end. `strings` extends to the end of `known` instead,
        // because `symbol_count` computes the distance between two tables from the difference of
        // their lengths.
        let strtab = string_table(strings.raw, dynamic.strsz).ok_or(ParseError::StringTable)?;

        let symbols = load.bytes_at(known, dynamic.symtab);
        let symbols = symbols.ok_or(ParseError::SymbolTable)?;
        let size = symbols.of(SYM_SIZE);
        if dynamic.syment != 0 && dynamic.syment != size as u64 {
            return Err(ParseError::SymbolTable);
        }
        let count = symbol_count(known, load, &dynamic, symbols, strings)?;
        let symtab = symbols
            .head_of(count, size)
            .ok_or(ParseError::SymbolTable)?;

        let mut versions = None;
        if dynamic.versym != 0 && dynamic.verdef != 0 {
            let versym = load.bytes_at(known, dynamic.versym);
            let versym = versym.and_then(|versym| versym.head_of(count, 2));
            let verdef = load.bytes_at(known, dynamic.verdef);
            versions = Some(Versions::new(
                versym.ok_or(ParseError::Versions)?,
                verdef.ok_or(ParseError::Versions)?,
                dynamic.verdefnum,
            )?);
        }
        Ok(Self {
            bytes: known,
            load,
            symtab: symtab.raw,
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
    /// `p_vaddr` is usually 0. It is not 0 if the image is prelinked, like the images of gVisor,
    /// of user-mode Linux and of x86_64 kernels before 3.14, or if the image was relocated when it
    /// was loaded, like QEMU's.
    #[must_use]
    pub fn load_address(&self) -> u64 {
        self.load.vaddr
    }

    /// Returns the symbols that can be called.
    ///
    /// A symbol can be called if its type is `STT_FUNC` or `STT_NOTYPE`, its binding is
    /// `STB_GLOBAL` or `STB_WEAK`, and it is defined in the image and not absolute. Symbols whose
    /// names the kernel blanked are included (see `FallbackReason::BlankedNames`).
    #[must_use]
    pub fn symbols(self) -> impl FusedIterator<Item = Symbol<'a>> + Clone {
        self.entries()
            .enumerate()
            .filter_map(move |(index, entry)| self.symbol_of(index, entry))
            .fuse()
    }

    /// Returns the first of [`symbols()`](Self::symbols) with this name and version.
    ///
    /// If `version` is `None`, or the image has no versions, only the name is compared. A blank
    /// name is never found.
    #[must_use]
    pub fn symbol(&self, name: &str, version: Option<&str>) -> Option<Symbol<'a>> {
        let (index, entry) = self.find(name, version)?;
        self.symbol_of(index, entry)
    }

    /// Returns the value of the symbol that [`symbol()`](Self::symbol) returns. The first use of a
    /// clock function needs only this value. Unlike `symbol()`, this function does not create a
    /// `Symbol`, so it need not search for the NULs that end the name and the version in the image.
    #[inline]
    pub(crate) fn value_of(&self, name: &str, version: Option<&str>) -> Option<u64> {
        let (_, entry) = self.find(name, version)?;
        Some(entry.addr(ST_VALUE))
    }

    /// Returns the entry of a symbol, and its index.
    #[inline]
    fn find(&self, name: &str, version: Option<&str>) -> Option<(usize, Bytes<'a>)> {
        // In a debug build, a loop takes less stack than closures. A signal handler can make the
        // first call, on a small stack (tests/process/stack.rs).
        for (index, entry) in self.entries().enumerate() {
            // Most entries have another name, so the name is compared first.
            if !self.has_string(entry.word(ST_NAME), name) || !self.is_callable(entry) {
                continue;
            }
            let Some(version) = version else {
                return Some((index, entry));
            };
            let Some(versions) = self.versions else {
                return Some((index, entry));
            };
            if let Some(start) = versions.name_of(entry, index) {
                if self.has_string(start, version) {
                    return Some((index, entry));
                }
            }
        }
        None
    }

    /// Returns the entries of the symbol table.
    #[inline]
    fn entries(&self) -> impl Iterator<Item = Bytes<'a>> + Clone + use<'a> {
        let symtab = self.bytes.with(self.symtab);
        symtab.structures(symtab.of(SYM_SIZE))
    }

    /// Returns whether a symbol can be called: whether it is code in the image, and visible to
    /// other objects.
    #[inline]
    fn is_callable(&self, entry: Bytes<'_>) -> bool {
        const SHN_UNDEF: u16 = 0;
        const SHN_ABS: u16 = 0xfff1;
        let is_code = matches!(kind(entry), STT_NOTYPE | STT_FUNC);
        let is_visible = matches!(binding(entry), STB_GLOBAL | STB_WEAK);
        let is_defined = !matches!(entry.half(ST_SHNDX), SHN_UNDEF | SHN_ABS);
        is_code && is_visible && is_defined && self.load.contains(entry.addr(ST_VALUE))
    }

    /// Returns the symbol of an entry, if it can be called and its name is not too long.
    fn symbol_of(&self, index: usize, entry: Bytes<'a>) -> Option<Symbol<'a>> {
        if !self.is_callable(entry) {
            return None;
        }
        let name = self.string(entry.word(ST_NAME))?;
        let mut version = None;
        if let Some(versions) = self.versions {
            if let Some(start) = versions.name_of(entry, index) {
                version = self.string(start);
            }
        }
        let [value, size] = entry.addrs(ST_VALUE);
        Some(Symbol {
            name,
            version,
            value,
            size,
            is_weak: binding(entry) == STB_WEAK,
        })
    }

    /// Returns the string at this offset of the string table, unless it is too long.
    fn string(&self, start: usize) -> Option<&'a CStr> {
        let rest = self.strtab.get(start..)?;
        let string = rest.get(..LONGEST_NAME).unwrap_or(rest);
        CStr::from_bytes_until_nul(string).ok()
    }

    /// Returns whether the string at this offset of the string table is `wanted`. Returns false if
    /// `wanted` is empty, is too long or contains a NUL.
    ///
    /// The comparison is a loop, because a comparison of slices calls `memcmp` (see the module
    /// `elf`).
    #[inline]
    fn has_string(&self, start: usize, wanted: &str) -> bool {
        let end = start.saturating_add(wanted.len());
        // The end is tested first, because most names have another length.
        if self.strtab.get(end) != Some(&0) {
            return false;
        }
        if wanted.is_empty() || wanted.len() >= LONGEST_NAME {
            return false;
        }
        let string = self.strtab.get(start..end).unwrap_or(&[]);
        for (byte, wanted) in string.iter().zip(wanted.as_bytes()) {
            if byte != wanted || *byte == 0 {
                return false;
            }
        }
        true
    }

    /// Returns the size of the image in bytes.
    pub(crate) fn size(&self) -> usize {
        self.load.image_size()
    }

    /// Returns the address of the image's first byte.
    pub(crate) fn base(&self) -> *const u8 {
        self.bytes.raw.as_ptr()
    }

    /// Returns the address of a symbol with this value, if the image's first byte is at `base`.
    pub(crate) fn address(&self, value: u64, base: usize) -> usize {
        base.wrapping_add(value.wrapping_sub(self.origin()) as usize)
    }

    /// Returns the value that a symbol at the image's first byte would have. The subtraction that
    /// computes the value can wrap (see `Load::origin`).
    // For vdso-doctor, which reads the images of other processes.
    #[doc(hidden)]
    #[must_use]
    pub fn origin(&self) -> u64 {
        self.load.origin()
    }

    /// Returns whether the symbols have versions.
    pub(crate) fn has_versions(&self) -> bool {
        self.versions.is_some()
    }

    /// Returns whether a function's name is blank.
    pub(crate) fn has_blanked_names(&self) -> bool {
        self.entries().any(|entry| {
            let is_blank = self.strtab.get(entry.word(ST_NAME)) == Some(&0);
            is_blank && kind(entry) == STT_FUNC && self.is_callable(entry)
        })
    }

    /// Returns the symbol whose code contains an address. If this is the code of a global symbol
    /// and of its weak alias, returns the global symbol.
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

    /// Returns where a symbol's code begins. On arm, this is the value without bit 0, which marks
    /// Thumb code.
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
    /// Writes the size and the address of the image, and not its bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Image({} bytes at {:p})", self.size(), self.base())
    }
}

/// Returns the type of a symbol.
fn kind(entry: Bytes<'_>) -> u8 {
    entry.byte(ST_INFO) & 0xf
}

/// Returns the binding of a symbol.
fn binding(entry: Bytes<'_>) -> u8 {
    entry.byte(ST_INFO) >> 4
}

/// Returns the number of symbols of an image. `known` is the whole image or its first bytes. Fails
/// if more symbols may follow after the end of `known`.
///
/// No field of the image contains the number of symbols, so this function derives it from the
/// tables. An example is the image of Linux 6.18 for x86_64:
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
/// - If the image has neither, the symbols end where the strings begin, because the string table
///   follows the symbol table in every linker script: (0x320 - 0x1d0) / 24 = 14. If the strings
///   come first nevertheless, the symbols end with the image.
///
/// If `known` is only the first page of this image, this function succeeds, because the hash table
/// proves that all symbols are in this page: it counts 14, and 151 fit between 0x1d0 and 0x1000.
/// Without a hash table, this function would fail, because more symbols could follow in the next
/// page. It would also fail if the hash table counted 200 symbols, because some of them would be in
/// the next page.
#[inline]
fn symbol_count(
    known: Bytes<'_>,
    load: Load,
    dynamic: &Dynamic,
    symbols: Bytes<'_>,
    strings: Bytes<'_>,
) -> Result<usize, ParseError> {
    let mut count = None;
    if dynamic.hash != 0 {
        let table = load.bytes_at(known, dynamic.hash);
        count = table.and_then(|table| hash::count_sysv(table, known.half(E_MACHINE)));
        if count.is_none() {
            return Err(ParseError::SysvHash);
        }
    } else if dynamic.gnu_hash != 0 {
        let table = load.bytes_at(known, dynamic.gnu_hash);
        count = table.and_then(hash::count_gnu);
        if count.is_none() {
            return Err(ParseError::GnuHash);
        }
    }
    let size = symbols.of(SYM_SIZE);
    let room = symbols.raw.len().checked_div(size).unwrap_or(0);
    match count {
        Some(count) if count <= room => Ok(count),
        _ if known.raw.len() < load.image_size() => Err(ParseError::Truncated),
        Some(_) => Ok(room),
        None => {
            // `symbols` and `strings` both end where `known` ends, so the difference of their
            // lengths is the distance between their starts.
            let between = symbols.raw.len().saturating_sub(strings.raw.len());
            let before_strings = between.checked_div(size).unwrap_or(0);
            Ok(if between == 0 { room } else { before_strings })
        }
    }
}

/// Cuts the string table after its last NUL, so that every string in it is terminated. A `size` of
/// 0 means that the table extends to the end of the image.
#[inline]
fn string_table(table: &[u8], size: u64) -> Option<&[u8]> {
    let size = usize::try_from(size).ok()?;
    let table = if size == 0 { table } else { table.get(..size)? };
    let last = table.iter().rposition(|&byte| byte == 0)?;
    table.get(..=last)
}
