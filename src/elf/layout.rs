//! The layout of an ELF image, and reads that cannot leave the image. The names are from the ELF
//! specification.

use super::error::ParseError;

/// `EI_DATA` of an image whose numbers have this process's byte order: `ELFDATA2LSB` or
/// `ELFDATA2MSB`.
pub(crate) const ELFDATA: u8 = if cfg!(target_endian = "big") { 2 } else { 1 };
/// `EI_CLASS` of a 32-bit image.
pub(crate) const ELFCLASS32: u8 = 1;
/// `EI_CLASS` of a 64-bit image.
pub(crate) const ELFCLASS64: u8 = 2;

/// The offset of a field in its structure, or the size of a structure or a number: first in
/// `ELFCLASS32`, then in `ELFCLASS64`.
#[derive(Clone, Copy)]
pub(super) struct Field(u8, u8);

/// The size of an `Addr` and an `Off`.
pub(super) const ADDR_SIZE: Field = Field(4, 8);

// The ELF header, `Elf32_Ehdr` and `Elf64_Ehdr`.
pub(super) const EHDR_SIZE: Field = Field(52, 64);
pub(super) const E_MACHINE: Field = Field(18, 18);
pub(super) const E_PHOFF: Field = Field(28, 32);
pub(super) const E_PHENTSIZE: Field = Field(42, 54);
pub(super) const E_PHNUM: Field = Field(44, 56);

// A program header, `Elf32_Phdr` and `Elf64_Phdr`.
pub(super) const PHDR_SIZE: Field = Field(32, 56);
pub(super) const P_TYPE: Field = Field(0, 0);
/// `p_vaddr`, `p_paddr`, `p_filesz` and `p_memsz` follow.
pub(super) const P_OFFSET: Field = Field(4, 8);

// An entry of the dynamic section, `Elf32_Dyn` and `Elf64_Dyn`.
pub(super) const DYN_SIZE: Field = Field(8, 16);
/// `d_val` follows.
pub(super) const D_TAG: Field = Field(0, 0);

// An entry of the symbol table, `Elf32_Sym` and `Elf64_Sym`.
pub(super) const SYM_SIZE: Field = Field(16, 24);
pub(super) const ST_NAME: Field = Field(0, 0);
/// `st_size` follows.
pub(super) const ST_VALUE: Field = Field(4, 8);
pub(super) const ST_INFO: Field = Field(12, 4);
pub(super) const ST_SHNDX: Field = Field(14, 6);

// A version definition (`Elf32_Verdef` and `Elf64_Verdef`), and the structure that has the
// definition's name (`Elf32_Verdaux` and `Elf64_Verdaux`).
pub(super) const VERDEF_SIZE: Field = Field(20, 20);
pub(super) const VD_FLAGS: Field = Field(2, 2);
pub(super) const VD_NDX: Field = Field(4, 4);
pub(super) const VD_AUX: Field = Field(12, 12);
pub(super) const VD_NEXT: Field = Field(16, 16);
pub(super) const VDA_NAME: Field = Field(0, 0);

/// Describes a field at the same offset in both classes.
pub(super) const fn at(offset: u8) -> Field {
    Field(offset, offset)
}

/// Bytes of an image: all of them, a table or a structure.
///
/// A read outside of the bytes returns 0. That is safe, because in every structure of an image 0
/// means "none": `PT_NULL`, `DT_NULL`, a local symbol, a missing table, an empty table.
///
/// The class is determined at run time, because a 64-bit kernel maps images of both classes, and a
/// 64-bit `vdso-doctor --pid` reads the images of 32-bit processes. The byte order is a constant,
/// because a kernel maps only images of its own byte order. We measured what two other designs
/// would save in a first call:
///
/// - A parser that supports only the process's own class would save 0.1 us and 1.6 KB of code, but
///   the doctor could then not read 32-bit processes.
/// - A type parameter for the class and the byte order saved 0.4 to 0.5 us, compared with a parser
///   that determines both at run time. But the constant byte order, which we kept, saves half of
///   that without a type parameter. The type parameter appeared in 37 lines, and the compiler had
///   to compile the parser twice: for the process's own format, and for any format.
#[derive(Clone, Copy)]
pub(super) struct Bytes<'a> {
    pub(super) raw: &'a [u8],
    is_64_bit: bool,
}

impl<'a> Bytes<'a> {
    /// Checks `e_ident`, the first bytes of an image.
    pub(super) fn of_image(raw: &'a [u8]) -> Result<Self, ParseError> {
        let Some((b"\x7fELF", ident)) = raw.split_first_chunk() else {
            return Err(ParseError::NotElf);
        };
        let &[class, data, ..] = ident else {
            return Err(ParseError::Truncated);
        };
        if !matches!(class, ELFCLASS32 | ELFCLASS64) {
            return Err(ParseError::Class);
        }
        if data != ELFDATA {
            return Err(ParseError::ByteOrder);
        }
        Ok(Self {
            raw,
            is_64_bit: class == ELFCLASS64,
        })
    }

    /// Returns `EI_CLASS`.
    pub(super) fn class(self) -> u8 {
        if self.is_64_bit {
            ELFCLASS64
        } else {
            ELFCLASS32
        }
    }

    /// Returns the offset or the size that a field has in the image's class.
    #[inline]
    pub(super) fn of(self, field: Field) -> usize {
        let Field(in_32_bits, in_64_bits) = field;
        if self.is_64_bit {
            in_64_bits.into()
        } else {
            in_32_bits.into()
        }
    }

    /// Returns a view of `raw`, another part of the same image.
    #[inline]
    pub(super) fn with(self, raw: &'a [u8]) -> Self {
        Self { raw, ..self }
    }

    /// Returns the bytes from `start` on, or `None` if `start` lies outside.
    #[inline]
    pub(super) fn tail(self, start: usize) -> Option<Self> {
        Some(self.with(self.raw.get(start..)?))
    }

    /// Returns the first `size` bytes, or `None` if there are fewer.
    #[inline]
    pub(super) fn head(self, size: usize) -> Option<Self> {
        Some(self.with(self.raw.get(..size)?))
    }

    /// Returns the first `count` structures of `size` bytes.
    #[inline]
    pub(super) fn head_of(self, count: usize, size: usize) -> Option<Self> {
        self.head(count.checked_mul(size)?)
    }

    /// Returns the bytes after the first `count` structures of `size` bytes.
    #[inline]
    pub(super) fn tail_of(self, count: usize, size: usize) -> Option<Self> {
        self.tail(count.checked_mul(size)?)
    }

    /// Returns the structures of `size` bytes, one after another. If `size` is 0, there are none.
    pub(super) fn structures(self, size: usize) -> impl Iterator<Item = Self> + Clone + use<'a> {
        let mut rest = self.raw;
        core::iter::from_fn(move || {
            if size == 0 {
                return None;
            }
            let (raw, after) = rest.split_at_checked(size)?;
            rest = after;
            Some(self.with(raw))
        })
    }

    #[inline]
    fn array<const N: usize>(self, field: Field) -> [u8; N] {
        let start = self.of(field);
        let number = self.raw.get(start..start.wrapping_add(N)).unwrap_or(&[]);
        match number.first_chunk() {
            Some(number) => *number,
            None => [0; N],
        }
    }

    /// Reads a byte.
    #[inline]
    pub(super) fn byte(self, field: Field) -> u8 {
        u8::from_ne_bytes(self.array(field))
    }

    /// Reads a `Half`, 2 bytes.
    #[inline]
    pub(super) fn half(self, field: Field) -> u16 {
        u16::from_ne_bytes(self.array(field))
    }

    /// Reads a `Word`, 4 bytes.
    #[inline]
    pub(super) fn word(self, field: Field) -> usize {
        u32::from_ne_bytes(self.array(field)) as usize
    }

    /// Reads an `Addr` or an `Off`, 4 or 8 bytes.
    #[inline]
    pub(super) fn addr(self, field: Field) -> u64 {
        let [addr] = self.addrs(field);
        addr
    }

    /// Reads `N` consecutive `Addr`s or `Off`s, the first of which is this field.
    #[inline]
    pub(super) fn addrs<const N: usize>(self, first: Field) -> [u64; N] {
        let start = self.of(first);
        let mut addrs = [0; N];
        // We tried `chunks_exact` in a `zip` instead. It divides, and with Rust 1.85 the compiler
        // does not remove the panic for a division by 0.
        if self.is_64_bit {
            let end = start.wrapping_add(size_of::<[u64; N]>());
            let mut rest = self.raw.get(start..end).unwrap_or(&[]);
            for addr in &mut addrs {
                let Some((number, after)) = rest.split_first_chunk() else {
                    break;
                };
                *addr = u64::from_ne_bytes(*number);
                rest = after;
            }
        } else {
            let end = start.wrapping_add(size_of::<[u32; N]>());
            let mut rest = self.raw.get(start..end).unwrap_or(&[]);
            for addr in &mut addrs {
                let Some((number, after)) = rest.split_first_chunk() else {
                    break;
                };
                *addr = u32::from_ne_bytes(*number).into();
                rest = after;
            }
        }
        addrs
    }

    /// Reads an `Off`. An offset that does not fit in a `usize` becomes `usize::MAX`, which lies
    /// outside of any image.
    #[inline]
    pub(super) fn offset(self, field: Field) -> usize {
        usize::try_from(self.addr(field)).unwrap_or(usize::MAX)
    }
}
