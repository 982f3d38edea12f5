//! Where the fields of an ELF image lie, and reads that cannot leave it: one constant table for each class.
//! Names are the specification's; an offset is from the start of its structure.

use core::fmt;

use super::ParseError;
use super::steps;

/// What differs between `ELFCLASS32` and `ELFCLASS64`.
#[derive(Debug)]
pub(crate) struct Layout {
    /// `EI_CLASS`.
    pub(super) class: u8,
    /// Bytes of an `Addr` and an `Off`, and of `d_tag` and `d_un`.
    pub(super) addr_size: usize,
    pub(super) e_phoff: usize,
    pub(super) e_phentsize: usize,
    pub(super) e_phnum: usize,
    pub(super) phdr_size: usize,
    pub(super) p_offset: usize,
    pub(super) p_vaddr: usize,
    pub(super) p_filesz: usize,
    pub(super) p_memsz: usize,
    pub(super) sym_size: usize,
    pub(super) st_value: usize,
    pub(super) st_size: usize,
    pub(super) st_info: usize,
    pub(super) st_shndx: usize,
}

static ELF32: Layout = Layout {
    class: 1,
    addr_size: 4,
    e_phoff: 28,
    e_phentsize: 42,
    e_phnum: 44,
    phdr_size: 32,
    p_offset: 4,
    p_vaddr: 8,
    p_filesz: 16,
    p_memsz: 20,
    sym_size: 16,
    st_value: 4,
    st_size: 8,
    st_info: 12,
    st_shndx: 14,
};

static ELF64: Layout = Layout {
    class: 2,
    addr_size: 8,
    e_phoff: 32,
    e_phentsize: 54,
    e_phnum: 56,
    phdr_size: 56,
    p_offset: 8,
    p_vaddr: 16,
    p_filesz: 32,
    p_memsz: 40,
    sym_size: 24,
    st_value: 8,
    st_size: 16,
    st_info: 4,
    st_shndx: 6,
};

// The same in both classes.
const EI_CLASS: usize = 4;
const EI_DATA: usize = 5;
const E_MACHINE: usize = 18;
pub(super) const P_TYPE: usize = 0;
pub(super) const ST_NAME: usize = 0;

/// How an image's numbers are written: its class and its byte order.
pub(crate) trait Format: Copy {
    /// The format of an image, if it is one of these.
    fn of(class: u8, data: u8) -> Result<Self, ParseError>;
    /// The class.
    fn layout(self) -> &'static Layout;
    /// The byte order.
    fn is_big_endian(self) -> bool;
    /// Whether the words of `DT_HASH` have 8 bytes on this machine, and not 4.
    fn has_wide_hash(self, machine: u16) -> bool;
}

/// Any of the four formats.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Any {
    layout: &'static Layout,
    big_endian: bool,
}

impl Format for Any {
    fn of(class: u8, data: u8) -> Result<Self, ParseError> {
        let layout = match class {
            1 => &ELF32,
            2 => &ELF64,
            _ => return Err(ParseError::Class),
        };
        match data {
            1 | 2 => Ok(Self { layout, big_endian: data == 2 }),
            _ => Err(ParseError::ByteOrder),
        }
    }

    #[inline]
    fn layout(self) -> &'static Layout {
        self.layout
    }

    #[inline]
    fn is_big_endian(self) -> bool {
        self.big_endian
    }

    /// They do on Alpha and 64-bit S/390 (their psABIs).
    fn has_wide_hash(self, machine: u16) -> bool {
        const EM_S390: u16 = 22;
        const EM_ALPHA: u16 = 0x9026;
        self.layout.addr_size == 8 && matches!(machine, EM_S390 | EM_ALPHA)
    }
}

/// The one format that this process can call into. What is constant here costs neither time nor code, which is why
/// the first call of a function walks in this format.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Native;

impl Format for Native {
    fn of(class: u8, data: u8) -> Result<Self, ParseError> {
        if class != Self.layout().class {
            return Err(ParseError::Class);
        }
        if data != if Self.is_big_endian() { 2 } else { 1 } {
            return Err(ParseError::ByteOrder);
        }
        Ok(Self)
    }

    #[inline]
    fn layout(self) -> &'static Layout {
        if cfg!(target_pointer_width = "64") { &ELF64 } else { &ELF32 }
    }

    #[inline]
    fn is_big_endian(self) -> bool {
        cfg!(target_endian = "big")
    }

    /// On none of the architectures that have a table.
    #[inline]
    fn has_wide_hash(self, _: u16) -> bool {
        false
    }
}

/// Bytes of an image: all of them, or a structure or a table in it, for offsets count from where they begin.
///
/// What is not there reads as 0, and in each structure of an image 0 says "nothing": `PT_NULL`, `DT_NULL`, a symbol that
/// is local, a table that is missing, a size that holds nothing.
#[derive(Clone, Copy)]
pub(super) struct Bytes<'a, F> {
    pub(super) raw: &'a [u8],
    pub(super) format: F,
}

impl<F> fmt::Debug for Bytes<'_, F> {
    /// How many there are, not which.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.raw.len())
    }
}

impl<'a, F: Format> Bytes<'a, F> {
    /// Reads `e_ident`.
    pub(super) fn new(raw: &'a [u8]) -> Result<Self, ParseError> {
        if !raw.starts_with(b"\x7fELF") {
            return Err(ParseError::NotElf);
        }
        match raw.get(EI_CLASS..=EI_DATA) {
            Some(&[class, data]) => Ok(Self { raw, format: F::of(class, data)? }),
            _ => Err(ParseError::Truncated),
        }
    }

    /// The layout of its structures.
    #[inline]
    pub(super) fn layout(self) -> &'static Layout {
        self.format.layout()
    }

    /// `e_machine`, if these are all the bytes.
    pub(super) fn machine(self) -> u16 {
        self.half(E_MACHINE)
    }

    /// What begins at `at`, if that is not beyond them.
    #[inline]
    pub(super) fn tail(self, at: usize) -> Option<Self> {
        Some(Self { raw: self.raw.get(at..)?, ..self })
    }

    /// The first `size` bytes, if there are so many.
    #[inline]
    pub(super) fn head(self, size: usize) -> Option<Self> {
        Some(Self { raw: self.raw.get(..size)?, ..self })
    }

    /// The first `count` structures of `size` bytes.
    #[inline]
    pub(super) fn first(self, count: usize, size: usize) -> Option<Self> {
        self.head(count.checked_mul(size)?)
    }

    /// What follows these.
    #[inline]
    pub(super) fn behind(self, count: usize, size: usize) -> Option<Self> {
        self.tail(count.checked_mul(size)?)
    }

    /// The structures of `size` bytes that make up these bytes.
    pub(super) fn table(self, size: usize) -> impl Iterator<Item = Self> + Clone {
        let mut rest = self.raw;
        core::iter::from_fn(move || {
            let (raw, behind) = rest.split_at_checked(size).filter(|_| size != 0)?;
            rest = behind;
            Some(Self { raw, ..self })
        })
    }

    /// The `N` bytes at `at`.
    #[inline]
    fn array<const N: usize>(self, at: usize) -> [u8; N] {
        steps::take(1);
        self.raw.get(at..).and_then(|tail| tail.first_chunk()).copied().unwrap_or([0; N])
    }

    /// The byte at `at`.
    #[inline]
    pub(super) fn byte(self, at: usize) -> u8 {
        let [byte] = self.array(at);
        byte
    }

    /// The `Half`, 2 bytes, at `at`.
    #[inline]
    pub(super) fn half(self, at: usize) -> u16 {
        let bytes = self.array(at);
        if self.format.is_big_endian() { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
    }

    /// The `Word`, 4 bytes, at `at`, which is a size or an offset wherever it is read here.
    #[inline]
    pub(super) fn word(self, at: usize) -> usize {
        let bytes = self.array(at);
        let word =
            if self.format.is_big_endian() { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) };
        word as usize
    }

    /// The `Addr` or `Off`, 4 or 8 bytes, at `at`.
    #[inline]
    pub(super) fn addr(self, at: usize) -> u64 {
        if self.layout().addr_size != 8 {
            return self.word(at) as u64;
        }
        let bytes = self.array(at);
        if self.format.is_big_endian() { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) }
    }

    /// The same as an offset; one that this machine cannot express is beyond any image.
    #[inline]
    pub(super) fn offset(self, at: usize) -> usize {
        usize::try_from(self.addr(at)).unwrap_or(usize::MAX)
    }
}
