//! The layout of an ELF image, and reads that cannot leave it. Names are the specification's.

use super::error::ParseError;
use super::steps;

/// The offset of a field in its structure, or a size, in `ELFCLASS32` and in `ELFCLASS64`.
#[derive(Clone, Copy)]
pub(super) struct Field(u8, u8);

pub(super) const EHDR_SIZE: Field = Field(52, 64);
pub(super) const E_MACHINE: Field = Field(18, 18);
pub(super) const E_PHOFF: Field = Field(28, 32);
pub(super) const E_PHENTSIZE: Field = Field(42, 54);
pub(super) const E_PHNUM: Field = Field(44, 56);

pub(super) const PHDR_SIZE: Field = Field(32, 56);
pub(super) const P_TYPE: Field = Field(0, 0);
pub(super) const P_OFFSET: Field = Field(4, 8);
pub(super) const P_VADDR: Field = Field(8, 16);
pub(super) const P_FILESZ: Field = Field(16, 32);
pub(super) const P_MEMSZ: Field = Field(20, 40);

pub(super) const DYN_SIZE: Field = Field(8, 16);
pub(super) const D_TAG: Field = Field(0, 0);
pub(super) const D_VAL: Field = Field(4, 8);

pub(super) const SYM_SIZE: Field = Field(16, 24);
pub(super) const ST_NAME: Field = Field(0, 0);
pub(super) const ST_VALUE: Field = Field(4, 8);
pub(super) const ST_SIZE: Field = Field(8, 16);
pub(super) const ST_INFO: Field = Field(12, 4);
pub(super) const ST_SHNDX: Field = Field(14, 6);

pub(super) const VERDEF_SIZE: Field = Field(20, 20);
pub(super) const VD_FLAGS: Field = Field(2, 2);
pub(super) const VD_NDX: Field = Field(4, 4);
pub(super) const VD_AUX: Field = Field(12, 12);
pub(super) const VD_NEXT: Field = Field(16, 16);
pub(super) const VDA_NAME: Field = Field(0, 0);

/// The size of an `Addr` and an `Off`.
pub(super) const ADDR_SIZE: Field = Field(4, 8);

/// Describes a field at the same offset in both classes.
pub(super) const fn at(offset: u8) -> Field {
    Field(offset, offset)
}

/// Bytes of an image: all of them, a table or a structure.
///
/// A number outside of them reads as 0. In every structure of an image, 0 means "none": `PT_NULL`,
/// `DT_NULL`, a local symbol, a missing table, an empty one.
#[derive(Clone, Copy)]
pub(crate) struct Bytes<'a, F> {
    pub(crate) raw: &'a [u8],
    pub(crate) format: F,
}

/// How the numbers of an image are written, known at compile time or only at run time.
pub(crate) trait Format: Copy {
    /// The format of this process, a constant.
    const OWN: Self;
    /// Whether there is no other. Then a debug build, too, leaves out the code for others.
    const IS_KNOWN: bool = size_of::<Self>() == 0;
    /// Reads `e_ident`.
    fn of_image(bytes: &[u8]) -> Result<Self, ParseError>;
    fn get(self) -> Any;
}

/// Any class and byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Any {
    is_64_bit: bool,
    pub(super) is_big_endian: bool,
}

impl Format for Any {
    const OWN: Self = Self {
        is_64_bit: cfg!(target_pointer_width = "64"),
        is_big_endian: cfg!(target_endian = "big"),
    };

    #[inline]
    fn of_image(bytes: &[u8]) -> Result<Self, ParseError> {
        let Some((b"\x7fELF", ident)) = bytes.split_first_chunk() else {
            return Err(ParseError::NotElf);
        };
        let &[class, data, ..] = ident else {
            return Err(ParseError::Truncated);
        };
        if !matches!(class, 1 | 2) {
            return Err(ParseError::Class);
        }
        if !matches!(data, 1 | 2) {
            return Err(ParseError::ByteOrder);
        }
        Ok(Self {
            is_64_bit: class == 2,
            is_big_endian: data == 2,
        })
    }

    #[inline]
    fn get(self) -> Any {
        self
    }
}

/// The format of this process. Its constants make the first call of a function smaller and faster.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Native;

impl Format for Native {
    const OWN: Self = Self;

    #[inline(always)]
    fn of_image(bytes: &[u8]) -> Result<Self, ParseError> {
        // `Class` also if the byte order is another one: each means a foreign image.
        if Any::of_image(bytes)? == Any::OWN {
            Ok(Self)
        } else {
            Err(ParseError::Class)
        }
    }

    #[inline]
    fn get(self) -> Any {
        Any::OWN
    }
}

impl<'a, F: Format> Bytes<'a, F> {
    /// Reads `e_ident`.
    #[inline(always)]
    pub(crate) fn of_image(raw: &'a [u8]) -> Result<Self, ParseError> {
        Ok(Self {
            raw,
            format: F::of_image(raw)?,
        })
    }

    /// Returns whether the format is that of this process.
    #[inline(always)]
    pub(crate) fn is_own(self) -> bool {
        self.format.get() == Any::OWN
    }

    #[inline]
    pub(super) fn is_64_bit(self) -> bool {
        self.format.get().is_64_bit
    }

    /// Returns the offset or the size in this class.
    #[inline]
    pub(super) fn of(self, field: Field) -> usize {
        (if self.is_64_bit() { field.1 } else { field.0 }).into()
    }

    /// Returns these bytes instead, in the same format.
    #[inline]
    pub(super) fn with(self, raw: &'a [u8]) -> Self {
        Self { raw, ..self }
    }

    /// Returns the bytes from `start` on, unless it lies outside.
    #[inline]
    pub(super) fn tail(self, start: usize) -> Option<Self> {
        Some(self.with(self.raw.get(start..)?))
    }

    /// Returns the first `size` bytes, if there are that many.
    #[inline]
    pub(super) fn head(self, size: usize) -> Option<Self> {
        Some(self.with(self.raw.get(..size)?))
    }

    /// Returns the first `count` structures of `size` bytes.
    #[inline]
    pub(super) fn first(self, count: usize, size: usize) -> Option<Self> {
        self.head(count.checked_mul(size)?)
    }

    /// Returns the bytes after the first `count` structures of `size` bytes.
    #[inline]
    pub(super) fn after(self, count: usize, size: usize) -> Option<Self> {
        self.tail(count.checked_mul(size)?)
    }

    /// Returns the structures of `size` bytes. There are none of 0 bytes.
    pub(super) fn table(self, size: usize) -> impl Iterator<Item = Self> + Clone + use<'a, F> {
        let mut rest = self.raw;
        core::iter::from_fn(move || {
            let (raw, after) = rest.split_at_checked(size).filter(|_| size != 0)?;
            rest = after;
            Some(self.with(raw))
        })
    }

    #[inline]
    fn array<const N: usize>(self, field: Field) -> [u8; N] {
        steps::take(1);
        let tail = self.raw.get(self.of(field)..);
        tail.and_then(|tail| tail.first_chunk())
            .copied()
            .unwrap_or([0; N])
    }

    /// Reads a byte.
    #[inline]
    pub(super) fn byte(self, field: Field) -> u8 {
        u8::from_le_bytes(self.array(field))
    }

    /// Reads a `Half`, 2 bytes.
    #[inline]
    pub(super) fn half(self, field: Field) -> u16 {
        let bytes = self.array(field);
        if self.format.get().is_big_endian {
            u16::from_be_bytes(bytes)
        } else {
            u16::from_le_bytes(bytes)
        }
    }

    /// Reads a `Word`, 4 bytes.
    #[inline]
    pub(super) fn word(self, field: Field) -> usize {
        let bytes = self.array(field);
        (if self.format.get().is_big_endian {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        }) as usize
    }

    /// Reads an `Addr` or an `Off`, 4 or 8 bytes.
    #[inline]
    pub(super) fn addr(self, field: Field) -> u64 {
        if !self.is_64_bit() {
            return self.word(field) as u64;
        }
        let bytes = self.array(field);
        if self.format.get().is_big_endian {
            u64::from_be_bytes(bytes)
        } else {
            u64::from_le_bytes(bytes)
        }
    }

    /// Reads an `Off`. One that does not fit in a `usize` lies outside of any image.
    #[inline]
    pub(super) fn offset(self, field: Field) -> usize {
        usize::try_from(self.addr(field)).unwrap_or(usize::MAX)
    }
}
