//! The program headers and the dynamic section: the extent of the image, and where its tables are.

use core::ops::Range;

use super::error::ParseError;
use super::layout::{
    Bytes, D_TAG, DYN_SIZE, E_PHENTSIZE, E_PHNUM, E_PHOFF, EHDR_SIZE, P_OFFSET, P_TYPE, PHDR_SIZE,
};

/// The program headers must lie in the first 4 KiB of the image. 4 KiB is the smallest page size of
/// any architecture, and the first call of a process tries to parse the first page alone
/// (`process::mapping`).
const HEAD: usize = 4096;
/// The maximum size of an image. The largest known vDSO has a size of 0.1 MiB.
const LARGEST: usize = 1 << 20;

// The types of segments, `p_type`.
const PT_LOAD: usize = 1;
const PT_DYNAMIC: usize = 2;

/// The loaded segment. A position in it can be stated in three ways, as the table shows. The
/// "address as linked" is the address that the position would have in memory if the image were
/// mapped at the address for which it was linked, which is usually 0. `p_vaddr`, `st_value` and the
/// addresses in the dynamic section are addresses as linked.
///
/// ```text
///                      image begins   segment begins   both end
/// offset in the image  0              start            image_size()
/// address as linked    origin()       vaddr            vaddr + size
/// address in memory    base           base + start     base + image_size()
/// ```
///
/// `start + size` is at most [`LARGEST`], so offsets never wrap; only addresses do. Offsets are
/// added with `wrapping_add` nevertheless, because the lint against overflow accepts no other
/// addition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) start: usize,
    size: usize,
    pub(super) vaddr: u64,
}

impl Load {
    /// Returns whether an address lies in the segment.
    ///
    /// The subtraction wraps at 64 bits, so the answer is right for any `p_vaddr`. In gVisor's
    /// image, `p_vaddr` is 0xffffffffff700000. QEMU relocates `p_vaddr` and the other addresses in
    /// its image by the same amount. A 32-bit image whose end wraps at 4 GiB is not supported,
    /// because no process can map such an image.
    #[inline]
    pub(super) fn contains(self, address: u64) -> bool {
        address.wrapping_sub(self.vaddr) < self.size as u64
    }

    /// Returns the bytes from the start of a table to the end of `image`. The table is at
    /// `address`, as linked. Returns `None` if the address is 0, which means that the image does
    /// not have the table, or if the address lies outside of the segment.
    #[inline]
    pub(super) fn bytes_at(self, image: Bytes<'_>, address: u64) -> Option<Bytes<'_>> {
        if address == 0 || !self.contains(address) {
            return None;
        }
        let inside = address.wrapping_sub(self.vaddr) as usize;
        image.tail(self.start.wrapping_add(inside))
    }

    /// Returns the offset at which the segment ends. The image ends there as well.
    pub(super) fn image_size(self) -> usize {
        self.start.wrapping_add(self.size)
    }

    /// Returns the value that a symbol at the image's first byte would have. The subtraction wraps
    /// if `p_vaddr` is less than the segment's offset, so callers must calculate with the result in
    /// wrapping arithmetic.
    pub(super) fn origin(self) -> u64 {
        self.vaddr.wrapping_sub(self.start as u64)
    }
}

/// The result of parsing the program headers.
pub(super) struct ProgramHeaders {
    pub(super) load: Load,
    /// The offsets in the image where the dynamic section starts and ends.
    pub(super) dynamic: Range<usize>,
}

impl ProgramHeaders {
    /// Finds `PT_DYNAMIC` and the `PT_LOAD` that contains it. Either of them may come first. Reads
    /// only the first page.
    #[inline]
    pub(super) fn read(bytes: Bytes<'_>) -> Result<Self, ParseError> {
        let headers = program_headers(bytes).ok_or(ParseError::ProgramHeaders)?;
        let mut is_dynamic = headers.clone();
        let Some(dynamic) = is_dynamic.find(|header| header.word(P_TYPE) == PT_DYNAMIC) else {
            return Err(ParseError::NoDynamicSegment);
        };
        let [p_offset, _, _, p_filesz] = dynamic.addrs(P_OFFSET);
        let dynamic = range(p_offset, p_filesz);
        for header in headers {
            if header.word(P_TYPE) != PT_LOAD {
                continue;
            }
            let [p_offset, p_vaddr, _, p_filesz, p_memsz] = header.addrs(P_OFFSET);
            let segment = range(p_offset, p_filesz);
            let is_around = segment.start <= dynamic.start && dynamic.end <= segment.end;
            if !is_around || p_memsz < p_filesz {
                continue;
            }
            if segment.end > LARGEST {
                return Err(ParseError::TooLarge);
            }
            let load = Load {
                start: segment.start,
                size: segment.len(),
                vaddr: p_vaddr,
            };
            return Ok(Self { load, dynamic });
        }
        Err(ParseError::LoadSegment)
    }
}

/// Returns the program headers, or `None` if they are too small or lie outside of the first page.
#[inline]
fn program_headers(bytes: Bytes<'_>) -> Option<impl Iterator<Item = Bytes<'_>> + Clone> {
    let header = bytes.head(bytes.of(EHDR_SIZE))?;
    let start = header.offset(E_PHOFF);
    let count = header.half(E_PHNUM).into();
    let size = header.half(E_PHENTSIZE).into();
    if size < header.of(PHDR_SIZE) {
        return None;
    }
    let page = bytes.head(HEAD).unwrap_or(bytes);
    let headers = page.tail(start)?.head_of(count, size)?;
    Some(headers.structures(size))
}

/// Returns a range of offsets in the file. An offset that does not fit in a `usize`, and an end
/// that overflows, become `usize::MAX`, which lies outside of any image.
fn range(offset: u64, size: u64) -> Range<usize> {
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    start..start.saturating_add(size)
}

/// The entries of the dynamic section that the parser uses. A missing entry is 0.
#[derive(Default)]
pub(super) struct Dynamic {
    // The addresses of tables.
    pub(super) hash: u64,
    pub(super) strtab: u64,
    pub(super) symtab: u64,
    pub(super) gnu_hash: u64,
    pub(super) versym: u64,
    pub(super) verdef: u64,
    // The size of the string table, the size of a symbol, and the number of version definitions.
    pub(super) strsz: u64,
    pub(super) syment: u64,
    pub(super) verdefnum: u64,
}

impl Dynamic {
    /// Reads the section up to its end or to `DT_NULL`. If two entries have the same tag, the later
    /// one counts.
    #[inline]
    pub(super) fn read(section: Bytes<'_>) -> Self {
        let mut dynamic = Self::default();
        for entry in section.structures(section.of(DYN_SIZE)) {
            let [tag, value] = entry.addrs(D_TAG);
            match tag {
                0 => break, // DT_NULL
                4 => dynamic.hash = value,
                5 => dynamic.strtab = value,
                6 => dynamic.symtab = value,
                10 => dynamic.strsz = value,
                11 => dynamic.syment = value,
                0x6fff_fef5 => dynamic.gnu_hash = value,
                0x6fff_fff0 => dynamic.versym = value,
                0x6fff_fffc => dynamic.verdef = value,
                0x6fff_fffd => dynamic.verdefnum = value,
                _ => {}
            }
        }
        dynamic
    }
}
