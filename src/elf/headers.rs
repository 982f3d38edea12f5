//! The program headers and the dynamic section: the extent of the image, and where its tables are.

use core::ops::Range;

use super::error::ParseError;
use super::layout::{
    Bytes, D_TAG, D_VAL, DYN_SIZE, E_MACHINE, E_PHENTSIZE, E_PHNUM, E_PHOFF, EHDR_SIZE, Format,
    P_FILESZ, P_MEMSZ, P_OFFSET, P_TYPE, P_VADDR, PHDR_SIZE,
};

/// The program headers must lie in the image's first page, on every page size.
const HEAD: usize = 4096;
/// The largest vDSO known has 0.1 MiB.
const LARGEST: usize = 1 << 20;

/// The loaded segment: its offset in the image, its size, and the address of its first byte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(super) start: usize,
    size: usize,
    pub(crate) vaddr: u64,
}

impl Load {
    /// Returns whether an address lies in the segment.
    ///
    /// Addresses wrap in 64 bits: gVisor links its image at 0xffffffffff700000, and QEMU relocates
    /// addresses and `p_vaddr` together. No process can map a 32-bit image that crosses 4 GiB; its
    /// addresses beyond are outside.
    #[inline]
    pub(super) fn contains(self, address: u64) -> bool {
        address.wrapping_sub(self.vaddr) < self.size as u64
    }

    /// Returns the offset at which the segment ends, and so the image: the image's size.
    #[inline]
    pub(crate) fn end(self) -> usize {
        self.start.wrapping_add(self.size)
    }

    /// Returns the value that a symbol at the image's first byte would have. It wraps.
    #[inline]
    pub(crate) fn origin(self) -> u64 {
        self.vaddr.wrapping_sub(self.start as u64)
    }
}

/// What the program headers say.
#[derive(Clone, Debug)]
pub(crate) struct ProgramHeaders<F> {
    pub(super) format: F,
    pub(super) machine: u16,
    pub(crate) load: Load,
    pub(super) dynamic: Range<usize>,
}

impl<F: Format> ProgramHeaders<F> {
    /// Finds `PT_DYNAMIC`, and the `PT_LOAD` that contains it, in any order. Reads only the first
    /// page.
    #[inline(always)]
    pub(crate) fn read(bytes: Bytes<'_, F>) -> Result<Self, ParseError> {
        const PT_LOAD: usize = 1;
        const PT_DYNAMIC: usize = 2;
        let header = bytes
            .head(bytes.of(EHDR_SIZE))
            .ok_or(ParseError::ProgramHeaders)?;
        let machine = header.half(E_MACHINE);
        let mut headers = headers(bytes, header).ok_or(ParseError::ProgramHeaders)?;
        let dynamic = headers
            .clone()
            .find(|header| header.word(P_TYPE) == PT_DYNAMIC);
        let dynamic = dynamic
            .map(file_range)
            .ok_or(ParseError::NoDynamicSegment)?;
        let around = headers.find(|header| {
            let segment = file_range(*header);
            header.word(P_TYPE) == PT_LOAD
                && header.addr(P_MEMSZ) >= header.addr(P_FILESZ)
                && segment.start <= dynamic.start
                && dynamic.end <= segment.end
        });
        let header = around.ok_or(ParseError::LoadSegment)?;
        let load = Load {
            start: header.offset(P_OFFSET),
            size: header.offset(P_FILESZ),
            vaddr: header.addr(P_VADDR),
        };
        if file_range(header).end > LARGEST {
            return Err(ParseError::TooLarge);
        }
        Ok(Self {
            format: bytes.format,
            machine,
            load,
            dynamic,
        })
    }
}

/// Returns the program headers of the image with this ELF header.
#[inline]
fn headers<'a, F: Format>(
    bytes: Bytes<'a, F>,
    header: Bytes<'a, F>,
) -> Option<impl Iterator<Item = Bytes<'a, F>> + Clone + use<'a, F>> {
    let page = bytes.head(HEAD).unwrap_or(bytes);
    let (size, count) = (header.half(E_PHENTSIZE).into(), header.half(E_PHNUM).into());
    let headers = page.tail(header.offset(E_PHOFF))?.first(count, size)?;
    (size >= page.of(PHDR_SIZE)).then(|| headers.table(size))
}

/// Returns the offsets of a segment in the file. The end saturates, which is outside of any image.
#[inline]
fn file_range<F: Format>(header: Bytes<'_, F>) -> Range<usize> {
    let start = header.offset(P_OFFSET);
    start..start.saturating_add(header.offset(P_FILESZ))
}

pub(super) const DT_HASH: usize = 4;
pub(super) const DT_STRTAB: usize = 5;
pub(super) const DT_SYMTAB: usize = 6;
pub(super) const DT_STRSZ: usize = 10;
pub(super) const DT_SYMENT: usize = 11;
pub(super) const DT_GNU_HASH: usize = 0x6fff_fef5;
pub(super) const DT_VERSYM: usize = 0x6fff_fff0;
pub(super) const DT_VERDEF: usize = 0x6fff_fffc;
pub(super) const DT_VERDEFNUM: usize = 0x6fff_fffd;

/// The values of the known tags in a dynamic section, or 0 for a missing one.
pub(super) struct Dynamic([u64; 12]);

impl Dynamic {
    #[inline(always)]
    pub(super) fn read<F: Format>(section: Bytes<'_, F>) -> Self {
        let mut dynamic = Self([0; 12]);
        for entry in section.table(section.of(DYN_SIZE)) {
            let tag = entry.offset(D_TAG);
            if tag == 0 {
                break; // DT_NULL
            }
            if let Some(value) = dynamic.0.get_mut(Self::place(tag)) {
                *value = entry.addr(D_VAL);
            }
        }
        dynamic
    }

    #[inline(always)]
    pub(super) fn get(&self, tag: usize) -> u64 {
        self.0.get(Self::place(tag)).copied().unwrap_or(0)
    }

    /// Returns the index of a tag's value. Most known tags lie in two ranges, so a few comparisons
    /// find the index, instead of one for each tag.
    #[inline(always)]
    const fn place(tag: usize) -> usize {
        match tag {
            DT_HASH..=DT_SYMENT => tag.wrapping_sub(DT_HASH),
            DT_VERDEF..=DT_VERDEFNUM => tag.wrapping_sub(DT_VERDEF).wrapping_add(8),
            DT_VERSYM => 10,
            DT_GNU_HASH => 11,
            _ => usize::MAX,
        }
    }
}
