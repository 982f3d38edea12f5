//! The program headers and the dynamic section: which bytes are the image, and where its tables lie.

use super::ParseError;
use super::layout::{Bytes, Format, P_TYPE};

/// The program headers must lie in the image's first page, whatever the page size.
const HEAD: usize = 4096;
/// No vDSO comes near this (the largest known has 0.1 MiB).
const LARGEST: usize = 1 << 20;

const PT_LOAD: usize = 1;
const PT_DYNAMIC: usize = 2;
const DT_NULL: u64 = 0;

/// The segment that is loaded: which bytes of the image it has, and the address of its first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) vaddr: u64,
}

impl Load {
    /// Where the image has the byte of this address, if it has it. Addresses wrap: gVisor's image is linked at
    /// 0xffffffffff700000, and QEMU relocates addresses and `p_vaddr` together. They wrap in 64 bits: of a 32-bit image that
    /// lies across the 4 GiB mark, where no process can map one, what is beyond the mark counts as outside.
    #[inline]
    pub(super) fn offset_of(self, address: u64) -> Option<usize> {
        let offset = address.wrapping_sub(self.origin());
        (self.start as u64 <= offset && offset < self.end as u64).then_some(offset as usize)
    }

    /// The address of the image's first byte. It wraps.
    #[inline]
    pub(super) fn origin(self) -> u64 {
        self.vaddr.wrapping_sub(self.start as u64)
    }
}

/// A piece of the image.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Span {
    /// The bytes of this piece, if the image has them all.
    #[inline]
    pub(super) fn of<F: Format>(self, bytes: Bytes<'_, F>) -> Option<Bytes<'_, F>> {
        Some(Bytes { raw: bytes.raw.get(self.start..self.end)?, ..bytes })
    }

    #[inline]
    pub(super) fn size(self) -> usize {
        self.end.saturating_sub(self.start)
    }

    /// Where the segment of a header lies in the file; what ends beyond any file is beyond any image.
    fn of_segment<F: Format>(header: Bytes<'_, F>) -> Self {
        let layout = header.layout();
        let start = header.offset(layout.p_offset);
        Self { start, end: start.saturating_add(header.offset(layout.p_filesz)) }
    }
}

/// What the program headers say: which bytes are loaded, and where the dynamic section lies in them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProgramHeaders<F> {
    pub(super) format: F,
    pub(super) load: Load,
    pub(super) dynamic: Span,
}

impl<F: Format> ProgramHeaders<F> {
    /// Finds `PT_DYNAMIC`, and the `PT_LOAD` that holds it, in whatever order they stand, reading nothing behind
    /// the first page.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, ParseError> {
        let bytes = Bytes::<F>::new(bytes)?;
        let layout = bytes.layout();
        let headers = headers(bytes).ok_or(ParseError::ProgramHeaders)?;
        let mut of_type = headers.clone().filter(|header| header.word(P_TYPE) == PT_DYNAMIC);
        let dynamic = of_type.next().map(Span::of_segment).ok_or(ParseError::NoDynamicSegment)?;
        let mut around = headers.filter(|header| {
            let segment = Span::of_segment(*header);
            header.word(P_TYPE) == PT_LOAD
                && header.addr(layout.p_memsz) >= header.addr(layout.p_filesz)
                && segment.start <= dynamic.start
                && dynamic.end <= segment.end
        });
        let header = around.next().ok_or(ParseError::LoadSegment)?;
        let Span { start, end } = Span::of_segment(header);
        if end > LARGEST {
            return Err(ParseError::TooLarge);
        }
        let load = Load { start, end, vaddr: header.addr(layout.p_vaddr) };
        Ok(Self { format: bytes.format, load, dynamic })
    }

    /// How many bytes from its start the image takes.
    pub(crate) fn extent(&self) -> usize {
        self.load.end
    }
}

/// The program headers, which all lie in the first page.
fn headers<F: Format>(bytes: Bytes<'_, F>) -> Option<impl Iterator<Item = Bytes<'_, F>> + Clone> {
    let layout = bytes.layout();
    let page = bytes.head(HEAD).unwrap_or(bytes);
    let (size, count) = (page.half(layout.e_phentsize), page.half(layout.e_phnum));
    let headers = page.tail(page.offset(layout.e_phoff))?.first(count.into(), size.into())?;
    (usize::from(size) >= layout.phdr_size).then(|| headers.table(size.into()))
}

/// The addresses of the tables, and their sizes, as the dynamic section has them; 0 where it has none.
#[derive(Debug)]
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
    /// Reads the dynamic section. The tags, `DT_HASH` to `DT_VERDEFNUM`, stand in the order of the fields.
    pub(super) fn new<F: Format>(dynamic: Bytes<'_, F>) -> Self {
        const TAGS: [u32; 9] = [4, 0x6fff_fef5, 5, 10, 6, 11, 0x6fff_fff0, 0x6fff_fffc, 0x6fff_fffd];
        let [hash, gnu_hash, strtab, strsz, symtab, syment, versym, verdef, verdefnum] =
            values(dynamic, TAGS);
        Self { hash, gnu_hash, strtab, strsz, symtab, syment, versym, verdef, verdefnum }
    }
}

/// The value of each tag's entry, 0 if there is none, read to `DT_NULL` or to the end.
fn values<F: Format, const N: usize>(dynamic: Bytes<'_, F>, tags: [u32; N]) -> [u64; N] {
    let mut values = [0; N];
    let size = dynamic.layout().addr_size;
    for entry in dynamic.table(size.saturating_mul(2)) {
        let tag = entry.addr(0);
        if tag == DT_NULL {
            break;
        }
        if let Some((_, value)) = tags.iter().zip(&mut values).find(|(wanted, _)| u64::from(**wanted) == tag)
        {
            *value = entry.addr(size);
        }
    }
    values
}
