//! The program headers and the dynamic section: which bytes are the image, and where its tables lie.

use super::layout::{Bytes, P_TYPE};
use crate::error::ParseError;

/// The program headers must lie in the image's first page, whatever the page size.
pub(super) const HEAD: usize = 4096;
/// No vDSO comes near this (the largest known has 0.1 MiB).
const LARGEST: usize = 1 << 20;

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;

/// The segment that is loaded, by its offset in the image and its address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) offset: usize,
    pub(super) vaddr: u64,
    pub(super) size: usize,
}

impl Load {
    /// Where the image has the byte of this address. Addresses wrap: gVisor's image is linked at
    /// 0xffffffffff700000, and QEMU relocates addresses and `p_vaddr` together.
    pub(super) fn offset_of(self, address: u64) -> Option<usize> {
        let inside = usize::try_from(address.wrapping_sub(self.vaddr)).ok()?;
        if inside < self.size { self.offset.checked_add(inside) } else { None }
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

/// Finds `PT_DYNAMIC`, and the `PT_LOAD` that holds it, in whatever order they stand, reading nothing behind
/// the first page.
pub(super) fn segments(bytes: Bytes<'_>) -> Result<(Load, Span), ParseError> {
    let headers = headers(bytes).ok_or(ParseError::ProgramHeaders)?;
    let of_type =
        |wanted| headers.clone().filter(move |&header| bytes.word(at(header, P_TYPE)) == Some(wanted));

    let dynamic = of_type(PT_DYNAMIC).next().ok_or(ParseError::NoDynamicSegment)?;
    let dynamic = span(bytes, dynamic).ok_or(ParseError::NoDynamicSegment)?;
    of_type(PT_LOAD)
        .find_map(|header| {
            let Span { offset, size } = span(bytes, header)?;
            let behind = dynamic.offset.checked_sub(offset)?;
            let sound = bytes.addr(at(header, bytes.layout.p_memsz))? >= size as u64;
            let load = Load { offset, vaddr: bytes.addr(at(header, bytes.layout.p_vaddr))?, size };
            (sound && behind.checked_add(dynamic.size)? <= size).then_some((load, dynamic))
        })
        .ok_or(ParseError::LoadSegment)
}

/// The offsets of the program headers, which all lie in the first page.
fn headers(bytes: Bytes<'_>) -> Option<impl Iterator<Item = usize> + Clone> {
    let layout = bytes.layout;
    let first = usize::try_from(bytes.addr(layout.e_phoff)?).ok()?;
    let size = usize::from(bytes.half(layout.e_phentsize)?);
    let count = usize::from(bytes.half(layout.e_phnum)?);
    let end = first.checked_add(size.checked_mul(count)?)?;
    let sound = size >= layout.phdr_size && end <= HEAD.min(bytes.raw.len());
    sound.then(|| (first..end).step_by(size))
}

fn span(bytes: Bytes<'_>, header: usize) -> Option<Span> {
    Some(Span {
        offset: usize::try_from(bytes.addr(at(header, bytes.layout.p_offset))?).ok()?,
        size: usize::try_from(bytes.addr(at(header, bytes.layout.p_filesz))?).ok()?,
    })
}

/// A field's offset in the image. Both terms are at most a page: the sum cannot wrap, and saturating says so.
fn at(structure: usize, field: usize) -> usize {
    structure.saturating_add(field)
}

/// The addresses of the tables, and their sizes, as the dynamic section has them.
#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) hash: Option<u64>,
    pub(super) gnu_hash: Option<u64>,
    pub(super) strtab: Option<u64>,
    pub(super) strsz: Option<u64>,
    pub(super) symtab: Option<u64>,
    pub(super) syment: Option<u64>,
    pub(super) versym: Option<u64>,
    pub(super) verdef: Option<u64>,
    pub(super) verdefnum: Option<u64>,
}

impl Tables {
    /// Reads the dynamic section, to `DT_NULL` or to its end.
    pub(super) fn new(bytes: Bytes<'_>, dynamic: Span) -> Self {
        let mut tables = Self::default();
        let size = bytes.layout.addr_size;
        let end = dynamic.offset.saturating_add(dynamic.size);
        for entry in (dynamic.offset..end).step_by(size.saturating_mul(2)) {
            let (Some(tag), value) = (bytes.addr(entry), bytes.addr(at(entry, size))) else { break };
            let slot = match tag {
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
            };
            *slot = value;
        }
        tables
    }
}
