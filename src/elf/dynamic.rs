//! The program headers and the dynamic section: which bytes are the image, and where its tables lie.

use super::layout::{Bytes, Format, P_TYPE};
use crate::error::ParseError;

/// The program headers must lie in the image's first page, whatever the page size.
const HEAD: usize = 4096;
/// No vDSO comes near this (the largest known has 0.1 MiB).
const LARGEST: usize = 1 << 20;

const PT_LOAD: usize = 1;
const PT_DYNAMIC: usize = 2;

/// The segment that is loaded: its offset in the image, its address, its size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) offset: usize,
    pub(super) vaddr: u64,
    size: usize,
}

impl Load {
    /// Where the image has the byte of this address, if it has it. Addresses wrap: gVisor's image is linked at
    /// 0xffffffffff700000, and QEMU relocates addresses and `p_vaddr` together.
    #[inline]
    pub(super) fn offset_of(self, address: u64) -> Option<usize> {
        let inside = address.wrapping_sub(self.vaddr);
        if inside < self.size as u64 { self.offset.checked_add(inside as usize) } else { None }
    }

    /// How many bytes from the start of the image it takes to hold the segment.
    pub(super) fn extent(self) -> Result<usize, ParseError> {
        match self.offset.checked_add(self.size) {
            Some(extent) if extent <= LARGEST => Ok(extent),
            _ => Err(ParseError::TooLarge),
        }
    }
}

/// A piece of the image.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) offset: usize,
    pub(super) size: usize,
}

impl Span {
    /// The bytes of this piece, if the image has them all.
    #[inline]
    pub(super) fn of<F: Format>(self, bytes: Bytes<'_, F>) -> Option<Bytes<'_, F>> {
        bytes.tail(self.offset).head(self.size)
    }

    /// Where the segment of a header lies in the image.
    fn of_segment<F: Format>(header: Bytes<'_, F>) -> Self {
        let layout = header.layout();
        Self { offset: header.offset(layout.p_offset), size: header.offset(layout.p_filesz) }
    }

    /// Whether another piece lies in this one.
    fn holds(self, inner: Self) -> bool {
        let before = inner.offset.wrapping_sub(self.offset);
        inner.offset >= self.offset && before <= self.size && inner.size <= self.size.wrapping_sub(before)
    }
}

/// Finds `PT_DYNAMIC`, and the `PT_LOAD` that holds it, in whatever order they stand, reading nothing behind
/// the first page.
pub(super) fn segments<F: Format>(bytes: Bytes<'_, F>) -> Result<(Load, Span), ParseError> {
    let headers = headers(bytes).ok_or(ParseError::ProgramHeaders)?;
    let mut of_type = headers.clone().filter(|header| header.word(P_TYPE) == PT_DYNAMIC);
    let dynamic = of_type.next().map(Span::of_segment).ok_or(ParseError::NoDynamicSegment)?;
    for header in headers {
        let Span { offset, size } = Span::of_segment(header);
        let layout = header.layout();
        let sound = header.addr(layout.p_memsz) >= size as u64 && Span { offset, size }.holds(dynamic);
        if sound && header.word(P_TYPE) == PT_LOAD {
            return Ok((Load { offset, vaddr: header.addr(layout.p_vaddr), size }, dynamic));
        }
    }
    Err(ParseError::LoadSegment)
}

/// The program headers, which all lie in the first page.
fn headers<F: Format>(bytes: Bytes<'_, F>) -> Option<impl Iterator<Item = Bytes<'_, F>> + Clone> {
    let layout = bytes.layout();
    let (size, count) = (bytes.half(layout.e_phentsize), bytes.half(layout.e_phnum));
    let page = bytes.head(HEAD).unwrap_or(bytes);
    let headers =
        page.tail(bytes.offset(layout.e_phoff)).head(usize::from(size).checked_mul(count.into())?)?;
    (usize::from(size) >= layout.phdr_size).then(|| headers.table(size.into()))
}

/// The addresses of the tables, and their sizes, as the dynamic section has them; 0 where it has none.
#[derive(Debug, Default)]
pub(super) struct Tables {
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

impl Tables {
    /// Reads the dynamic section, to `DT_NULL` or to its end.
    pub(super) fn new<F: Format>(dynamic: Bytes<'_, F>) -> Self {
        let mut tables = Self::default();
        let size = dynamic.layout().addr_size;
        for entry in dynamic.table(size.saturating_mul(2)) {
            *match entry.addr(0) {
                0 => break, // DT_NULL
                4 => &mut tables.hash,
                5 => &mut tables.strtab,
                6 => &mut tables.symtab,
                10 => &mut tables.strsz,
                11 => &mut tables.syment,
                0x6fff_fef5 => &mut tables.gnu_hash,
                0x6fff_fff0 => &mut tables.versym,
                0x6fff_fffc => &mut tables.verdef,
                0x6fff_fffd => &mut tables.verdefnum,
                _ => continue,
            } = entry.addr(size);
        }
        tables
    }
}
