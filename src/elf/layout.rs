//! Where the fields of an ELF image lie: one constant table for each class, and reads that cannot leave
//! the image. Names are the specification's; an offset is from the start of its structure.

use crate::error::ParseError;

/// What differs between `ELFCLASS32` and `ELFCLASS64`.
#[derive(Debug)]
pub(super) struct Layout {
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

/// The bytes of an image, and how its numbers are written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes<'a> {
    pub(super) raw: &'a [u8],
    pub(super) layout: &'static Layout,
    big_endian: bool,
}

impl<'a> Bytes<'a> {
    /// Reads `e_ident`.
    pub(super) fn new(bytes: &'a [u8]) -> Result<Self, ParseError> {
        if !bytes.starts_with(b"\x7fELF") {
            return Err(ParseError::NotElf);
        }
        let layout = match bytes.get(EI_CLASS) {
            Some(1) => &ELF32,
            Some(2) => &ELF64,
            Some(_) => return Err(ParseError::Class),
            None => return Err(ParseError::Truncated),
        };
        let big_endian = match bytes.get(EI_DATA) {
            Some(1) => false,
            Some(2) => true,
            Some(_) => return Err(ParseError::ByteOrder),
            None => return Err(ParseError::Truncated),
        };
        Ok(Self { raw: bytes, layout, big_endian })
    }

    /// The first `len` bytes of the image.
    pub(super) fn first(self, len: usize) -> Option<Self> {
        Some(Self { raw: self.raw.get(..len)?, ..self })
    }

    /// `EI_CLASS`.
    pub(super) fn class(self) -> u8 {
        if self.layout.addr_size == 8 { 2 } else { 1 }
    }

    /// `e_machine`.
    pub(super) fn machine(self) -> Option<u16> {
        self.half(E_MACHINE)
    }

    /// The `N` bytes at `base + field`.
    fn array<const N: usize>(self, base: usize, field: usize) -> Option<[u8; N]> {
        self.raw.get(base.checked_add(field)?..)?.first_chunk().copied()
    }

    /// The byte at `base + field`.
    pub(super) fn byte(self, base: usize, field: usize) -> Option<u8> {
        let [byte] = self.array(base, field)?;
        Some(byte)
    }

    /// The `Half`, 2 bytes, at `at`.
    pub(super) fn half(self, at: usize) -> Option<u16> {
        let bytes = self.array(at, 0)?;
        Some(if self.big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    }

    /// The `Word`, 4 bytes, at `at`.
    pub(super) fn word(self, at: usize) -> Option<u32> {
        let bytes = self.array(at, 0)?;
        Some(if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    /// The `Xword`, 8 bytes, at `at`.
    pub(super) fn xword(self, at: usize) -> Option<u64> {
        let bytes = self.array(at, 0)?;
        Some(if self.big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    }

    /// The `Addr` or `Off`, 4 or 8 bytes, at `at`.
    pub(super) fn addr(self, at: usize) -> Option<u64> {
        if self.layout.addr_size == 8 { self.xword(at) } else { self.word(at).map(u64::from) }
    }

    /// Whether `count` things of `size` bytes from `at` lie in the image.
    pub(super) fn holds(self, at: usize, count: usize, size: usize) -> bool {
        count
            .checked_mul(size)
            .and_then(|bytes| bytes.checked_add(at))
            .is_some_and(|end| end <= self.raw.len())
    }
}
