//! The program headers and the dynamic section: the extent of the image, and where its tables are.

use core::hint::black_box;
use core::ops::Range;

use super::layout::{
    Bytes, D_TAG, D_VAL, DYN_SIZE, E_PHENTSIZE, E_PHNUM, E_PHOFF, Format, P_FILESZ, P_MEMSZ, P_OFFSET,
    P_TYPE, P_VADDR, PHDR_SIZE,
};
use super::{ParseError, steps};

/// The program headers must lie in the image's first page, on every page size.
const HEAD: usize = 4096;
/// The size of a cache line on most CPUs.
const LINE: usize = 64;
/// The lines with the tables. The kernel's linker scripts place them before the code.
const LINES: usize = 24;
/// The largest vDSO known has 0.1 MiB.
const LARGEST: usize = 1 << 20;

/// The loaded segment: its offsets in the image, and the address of its first byte.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    start: usize,
    pub(super) end: usize,
    pub(super) vaddr: u64,
}

impl Load {
    /// Returns the offset of an address, unless the address lies outside of the segment.
    ///
    /// Addresses wrap in 64 bits: gVisor links its image at 0xffffffffff700000, and QEMU relocates
    /// addresses and `p_vaddr` together. In a 32-bit image that crosses 4 GiB, which no process can
    /// map, the addresses beyond are outside.
    #[inline]
    pub(super) fn offset_of(self, address: u64) -> Option<usize> {
        let offset = address.wrapping_sub(self.origin());
        (self.start as u64 <= offset && offset < self.end as u64).then_some(offset as usize)
    }

    /// Returns the address of the image's first byte. It wraps.
    #[inline]
    pub(super) fn origin(self) -> u64 {
        self.vaddr.wrapping_sub(self.start as u64)
    }
}

/// What the program headers say.
#[derive(Clone, Debug)]
pub(crate) struct ProgramHeaders<F> {
    pub(super) format: F,
    pub(super) load: Load,
    pub(super) dynamic: Range<usize>,
}

impl<F: Format> ProgramHeaders<F> {
    /// Finds `PT_DYNAMIC`, and the `PT_LOAD` that contains it, in any order. Reads only the first
    /// page.
    #[inline(always)]
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, ParseError> {
        const PT_LOAD: usize = 1;
        const PT_DYNAMIC: usize = 2;
        fetch(bytes);
        let bytes = Bytes::new(bytes)?;
        let headers = headers(bytes).ok_or(ParseError::ProgramHeaders)?;
        let mut dynamic = headers.clone().filter(|header| header.word(P_TYPE) == PT_DYNAMIC);
        let dynamic = dynamic.next().map(file_range).ok_or(ParseError::NoDynamicSegment)?;
        let mut around = headers.filter(|header| {
            let segment = file_range(*header);
            header.word(P_TYPE) == PT_LOAD
                && header.addr(P_MEMSZ) >= header.addr(P_FILESZ)
                && segment.start <= dynamic.start
                && dynamic.end <= segment.end
        });
        let header = around.next().ok_or(ParseError::LoadSegment)?;
        let Range { start, end } = file_range(header);
        if end > LARGEST {
            return Err(ParseError::TooLarge);
        }
        let load = Load { start, end, vaddr: header.addr(P_VADDR) };
        Ok(Self { format: bytes.format, load, dynamic })
    }

    /// Returns the size of the image.
    pub(crate) fn extent(&self) -> usize {
        self.load.end
    }
}

/// Reads a byte of each cache line of the tables. These reads overlap, but the parser's own wait for
/// each other: the next address is in the line before.
#[inline(always)]
fn fetch(bytes: &[u8]) {
    // The compiler does not know the number, so it does not unroll the loop, which runs once.
    for line in bytes.chunks_exact(LINE).take(black_box(LINES)) {
        if let [byte, ..] = line {
            steps::take(1);
            black_box(*byte);
        }
    }
}

fn headers<F: Format>(bytes: Bytes<'_, F>) -> Option<impl Iterator<Item = Bytes<'_, F>> + Clone> {
    let page = bytes.head(HEAD).unwrap_or(bytes);
    let (size, count) = (page.half(E_PHENTSIZE).into(), page.half(E_PHNUM).into());
    let headers = page.tail(page.offset(E_PHOFF))?.first(count, size)?;
    let known = page.of(PHDR_SIZE);
    (size >= known).then(|| headers.table(size).filter_map(move |header| header.head(known)))
}

/// Returns the offsets of a segment in the file. The end saturates, which is outside of any image.
fn file_range<F: Format>(header: Bytes<'_, F>) -> Range<usize> {
    let start = header.offset(P_OFFSET);
    start..start.saturating_add(header.offset(P_FILESZ))
}

/// The values of a dynamic section, or 0 for a missing one.
pub(super) struct Dynamic {
    pub(super) hash: u64,
    pub(super) gnu_hash: u64,
    pub(super) strtab: u64,
    pub(super) strsz: u64,
    pub(super) symtab: u64,
    pub(super) syment: u64,
    pub(super) versym: u64,
    pub(super) verdef: u64,
    pub(super) verdefnum: u64,
}

impl Dynamic {
    #[inline(always)]
    pub(super) fn read<F: Format>(section: Bytes<'_, F>) -> Self {
        // Two arrays take fewer tests for an entry than nine tags.
        let (mut low, mut high, mut gnu_hash) = ([0; 8], [0; 14], 0);
        for entry in section.table(section.of(DYN_SIZE)) {
            let tag = entry.offset(D_TAG);
            if tag == 0 {
                break; // DT_NULL
            }
            if let Some(value) = low.get_mut(tag.wrapping_sub(4)) {
                *value = entry.addr(D_VAL);
            } else if let Some(value) = high.get_mut(tag.wrapping_sub(0x6fff_fff0)) {
                *value = entry.addr(D_VAL);
            } else if tag == 0x6fff_fef5 {
                gnu_hash = entry.addr(D_VAL);
            }
        }
        let [hash, strtab, symtab, _, _, _, strsz, syment] = low;
        let [versym, .., verdef, verdefnum] = high;
        Self { hash, gnu_hash, strtab, strsz, symtab, syment, versym, verdef, verdefnum }
    }
}
