//! An ELF file of a process: its symbols, debug information and unwind tables.

use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::Read as _;
use std::iter::repeat_n;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;

use addr2line::Context;
use flate2::read::ZlibDecoder;
use gimli::{
    BaseAddresses, CieOrFde, CommonInformationEntry, EhFrame, EhFrameOffset, EndianReader,
    NativeEndian, Reader as _, Section as _, SectionId, UnwindContext, UnwindSection as _,
    UnwindTableRow,
};
use object::elf::{STT_FUNC, STT_GNU_IFUNC};
use object::read::elf::{ElfFile, FileHeader, SectionHeader as _, Sym as _};
use object::{
    CompressionFormat, Object as _, ObjectSection as _, ObjectSegment as _, ObjectSymbol as _,
};
use ruzstd::StreamingDecoder;

use super::bounded::{Bounded, Bytes, Limits, has_room};
use super::file::{self, Elf, Image, Ranges};
use super::{Frame, debug_file, go, names};
use crate::progress::Progress;

/// An ELF file that a process has mapped.
pub(super) struct Module {
    pub(super) image: Image,
    /// The file that contains the debug information and the symbols. It is `image` if there is no
    /// other.
    debug_image: Image,
    /// The parts of the file that are loaded, each with its first address.
    segments: Vec<(Range<u64>, u64)>,
    /// The functions, sorted by address.
    symbols: Vec<Symbol>,
    eh_frame: (EhFrame<Bytes>, BaseAddresses),
    /// The addresses of each function that has an unwind entry (FDE), and the offset of that entry
    /// in `.eh_frame`, sorted by address: the result of [`tables`].
    tables: Vec<(Range<u64>, usize)>,
    /// None if there is no debug information. It is parsed when it is first needed.
    debug: OnceCell<Option<Context<Bounded>>>,
}

/// A function.
pub(super) struct Symbol {
    pub(super) range: Range<u64>,
    /// The offset of the function's name in the module's `image` or `debug_image`. The name itself
    /// is not kept, because many symbols can share one long name.
    name: u64,
    /// Whether `name` is an offset in `debug_image`.
    is_in_debug_file: bool,
}

/// The maximum number of symbols of a file. Further symbols are ignored.
const MOST_SYMBOLS: usize = 1 << 22;

/// The maximum number of common information entries (CIEs) that are kept. The unwind entries (FDEs)
/// of many functions share one CIE.
const MOST_SHARED: usize = 1 << 16;

/// The maximum sizes of an unwind entry (FDE) and of a common information entry (CIE), in bytes.
/// Larger ones are ignored. An FDE is read for each new address in its function, and in a malformed
/// file, each FDE can have a CIE of its own, which overlaps the others.
const MOST_OF_FDE: usize = 1 << 16;
const MOST_OF_CIE: u32 = 1 << 10;

/// The maximum depth of debug information. If the debug information of a file is nested deeper, it
/// is ignored, because addr2line is recursive and could overflow the stack.
const MOST_NESTED: isize = 512;

/// The maximum number of functions that are inlined into one another. Further ones are ignored.
const MOST_INLINED: usize = 64;

impl Module {
    /// Parses a file. `find` opens files of debug information.
    pub(super) fn parse(
        image: Image,
        path: &str,
        find: impl Fn(&Path) -> Option<Image>,
        downloads: Option<&Progress>,
    ) -> Option<Self> {
        let source = image.clone();
        let ranges = source.ranges();
        let file = file::elf(&ranges)?;
        let mut segments = Vec::new();
        for segment in file.segments() {
            let (offset, size) = segment.file_range();
            segments.push((offset..offset.saturating_add(size), segment.address()));
        }
        let debug_image = debug_file::of(&file, Path::new(path), find, downloads);
        let debug_image = debug_image.unwrap_or_else(|| image.clone());
        let mut symbols = {
            let ranges = debug_image.ranges();
            symbols_of(&file::elf(&ranges)?, false)
        };
        let is_stripped = symbols.is_empty();
        symbols.extend(symbols_of(&file, true));
        // Go's own table is read if there is no symbol table. Dynamic symbols do not count, because
        // a stripped program with cgo has dynamic symbols of C.
        if is_stripped {
            symbols.extend(go_symbols(&file).unwrap_or_default());
        }
        symbols.sort_by_key(|symbol| (symbol.range.start, Reverse(symbol.range.end)));
        symbols.dedup_by_key(|symbol| symbol.range.start);
        symbols.shrink_to_fit();
        let eh_frame = eh_frame(&file, &image);
        Some(Self {
            image,
            debug_image,
            segments,
            symbols,
            tables: tables(&eh_frame, MOST_SYMBOLS),
            eh_frame,
            debug: OnceCell::new(),
        })
    }

    /// Returns the address at which a byte of the file is loaded. Returns `None` if it is not
    /// loaded.
    pub(super) fn address(&self, offset: u64) -> Option<u64> {
        let mut segments = self.segments.iter();
        let (range, address) = segments.find(|(range, _)| range.contains(&offset))?;
        Some(address.wrapping_add(offset - range.start))
    }

    /// Returns the function that contains an address. A function without a size ends at the next
    /// one.
    pub(super) fn symbol(&self, address: u64) -> Option<&Symbol> {
        let next = self
            .symbols
            .partition_point(|symbol| symbol.range.start <= address);
        // The symbol that contains the address is not always the last one before it, because other
        // symbols, such as the one of a local label, can be inside of a function.
        let mut outer = self.symbols[..next].iter().rev().take(8);
        outer.find(|symbol| symbol.range.contains(&address) || symbol.range.is_empty())
    }

    /// Returns the functions at an address, the innermost inlined one first. The list is empty if
    /// no function is known there.
    pub(super) fn frames(&self, address: u64, module: &str) -> Vec<Frame> {
        let symbol = self.symbol(address).and_then(|symbol| self.name(symbol));
        let mut found = match self.debug.get_or_init(|| self.context()) {
            Some(context) => debug_frames(context, address, module).unwrap_or_default(),
            None => Vec::new(),
        };
        // The outermost function of the debug information may have no name. It then gets the name
        // of the symbol.
        if let (Some(frame), Some(symbol)) = (found.last_mut(), &symbol) {
            if frame.function.is_empty() {
                frame.function.clone_from(symbol);
            }
        }
        found.retain(|frame| !frame.function.is_empty());
        if found.is_empty() {
            found.extend(symbol.map(|symbol| Frame::named(symbol, module)));
        }
        found
    }

    pub(super) fn named_symbols(&self) -> impl Iterator<Item = (String, u64)> {
        self.symbols
            .iter()
            .filter_map(|symbol| Some((self.name(symbol)?, symbol.range.start)))
    }

    fn name(&self, symbol: &Symbol) -> Option<String> {
        let image = if symbol.is_in_debug_file {
            &self.debug_image
        } else {
            &self.image
        };
        Some(names::demangled(&image.name(symbol.name)?))
    }

    fn context(&self) -> Option<Context<Bounded>> {
        let ranges = self.debug_image.ranges();
        let file = file::elf(&ranges)?;
        file.section_by_name(".debug_info")
            .or_else(|| file.section_by_name(".zdebug_info"))?;
        let section = |id| section(&file, id, &self.debug_image);
        context(section, Limits::default())
    }

    /// Returns the row of the unwind table for an address. The row tells how the registers of the
    /// caller are found.
    pub(super) fn unwind_row(&self, address: u64) -> Option<UnwindTableRow<usize>> {
        let next = self
            .tables
            .partition_point(|(range, _)| range.start <= address);
        let (range, offset) = self.tables[..next].last()?;
        if !range.contains(&address) {
            return None;
        }
        let (frames, bases) = &self.eh_frame;
        let offset = EhFrameOffset(*offset);
        let entry = frames.fde_from_offset(bases, offset, EhFrame::cie_from_offset);
        let entry = entry.ok()?;
        let mut context = UnwindContext::new();
        let row = entry.unwind_info_for_address(frames, bases, &mut context, address);
        row.ok().cloned()
    }
}

/// Returns the section `.eh_frame`, which contains the unwind entries, and the addresses of this
/// section and of .text. An address in an unwind entry can be relative to these two addresses.
fn eh_frame(file: &Elf<'_>, image: &Image) -> (EhFrame<Bytes>, BaseAddresses) {
    let mut frames = EhFrame::from(section(file, SectionId::EhFrame, image));
    frames.set_address_size(if file.is_64() { 8 } else { 4 });
    let start = |name| match file.section_by_name(name) {
        Some(section) => section.address(),
        None => 0,
    };
    let bases = BaseAddresses::default();
    let bases = bases.set_text(start(".text"));
    (frames, bases.set_eh_frame(start(".eh_frame")))
}

/// Returns the addresses of each function that has an unwind entry (FDE), and the offset of that
/// entry in `.eh_frame`. Reads at most `most` of these entries. The section `.eh_frame_hdr` lists
/// them as well, but many static programs do not have that section.
pub(super) fn tables(
    (frames, bases): &(EhFrame<Bytes>, BaseAddresses),
    most: usize,
) -> Vec<(Range<u64>, usize)> {
    let mut entries = frames.entries(bases);
    let mut read = 0;
    let mut tables = Vec::new();
    // The entries of many functions share one common information entry (CIE). A CIE can be long, so
    // it is parsed only once and kept.
    let mut known = HashMap::new();
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else {
            continue;
        };
        if read == most {
            break;
        }
        read += 1;
        if partial.entry_len() > MOST_OF_FDE {
            continue;
        }
        if known.len() >= MOST_SHARED {
            known.clear();
        }
        let entry = partial.parse(|section, bases, offset| {
            let shared = known.entry(offset.0);
            let shared = shared.or_insert_with(|| short_cie(section, bases, offset));
            shared.clone()
        });
        if let Ok(entry) = entry {
            let range = entry.initial_address()..entry.end_address();
            tables.push((range, entry.offset()));
        }
    }
    tables.sort_by_key(|(range, _)| range.start);
    tables
}

/// Parses the common information entry (CIE) at an offset. An entry begins with its length, without
/// these four bytes.
///
/// # Errors
/// If the entry has more than `MOST_OF_CIE` bytes, or is malformed.
fn short_cie(
    frames: &EhFrame<Bytes>,
    bases: &BaseAddresses,
    offset: EhFrameOffset,
) -> gimli::Result<CommonInformationEntry<Bytes>> {
    let mut entry = frames.reader().clone();
    entry.skip(offset.0)?;
    if entry.read_u32()? > MOST_OF_CIE {
        return Err(gimli::Error::UnexpectedEof(entry.offset_id()));
    }
    frames.cie_from_offset(bases, offset)
}

/// Returns the functions in a file's symbol table or, if `is_dynamic`, in its dynamic symbol table.
fn symbols_of(file: &Elf<'_>, is_dynamic: bool) -> Vec<Symbol> {
    match file {
        object::File::Elf32(file) => symbols_of_elf(file, is_dynamic),
        object::File::Elf64(file) => symbols_of_elf(file, is_dynamic),
        _ => Vec::new(),
    }
}

fn symbols_of_elf<'a, Header: FileHeader>(
    file: &ElfFile<'a, Header, &'a Ranges<'a>>,
    is_dynamic: bool,
) -> Vec<Symbol> {
    let endian = file.endian();
    let table = if is_dynamic {
        file.elf_dynamic_symbol_table()
    } else {
        file.elf_symbol_table()
    };
    let strings = file.elf_section_table().section(table.string_section());
    let Ok(strings) = strings else {
        return Vec::new();
    };
    let strings: u64 = strings.sh_offset(endian).into();
    let mut symbols = Vec::new();
    for symbol in table.symbols() {
        let is_function = [STT_FUNC, STT_GNU_IFUNC].contains(&symbol.st_type());
        if !is_function || !symbol.is_definition(endian, table.strings()) {
            continue;
        }
        let start: u64 = symbol.st_value(endian).into();
        let size: u64 = symbol.st_size(endian).into();
        let name = strings.checked_add(symbol.st_name(endian).into());
        if let (Some(end), Some(name)) = (start.checked_add(size), name) {
            symbols.push(Symbol {
                range: start..end,
                name,
                is_in_debug_file: !is_dynamic,
            });
        }
        if symbols.len() == MOST_SYMBOLS {
            break;
        }
    }
    symbols
}

/// Returns the functions of Go's own table.
fn go_symbols(file: &Elf<'_>) -> Option<Vec<Symbol>> {
    let mut names = [".gopclntab", ".data.rel.ro.gopclntab"].iter();
    let table = names.find_map(|name| file.section_by_name(name))?;
    let (start, _) = table.file_range()?;
    let bytes = table.data().ok()?;
    let text = file.section_by_name(".text")?.address();
    let functions = go::functions(bytes, text, MOST_SYMBOLS)?;
    let mut shift = 0;
    if !functions.has_text {
        shift = go_shift(file, &functions, bytes)?;
    }
    let mut symbols = Vec::new();
    for (range, name) in functions.known {
        symbols.push(Symbol {
            range: range.start.wrapping_add(shift)..range.end.wrapping_add(shift),
            name: start.wrapping_add(name as u64),
            is_in_debug_file: false,
        });
    }
    Some(symbols)
}

/// Returns the distance from the start of .text to Go's functions. Without cgo it is 0. With cgo,
/// C's functions come first, and Go's function `crosscall2` has a dynamic symbol. The distance is
/// then the difference between the address of that symbol and the address that was computed from
/// Go's table for the same function.
fn go_shift(file: &Elf<'_>, functions: &go::Functions, table: &[u8]) -> Option<u64> {
    const EXPORTED: &[u8] = b"crosscall2";
    const MOST_NAMES: u64 = 1 << 20;
    let Some(names) = file.section_by_name(".dynstr") else {
        return Some(0);
    };
    if names.size() == 0 {
        return Some(0);
    }
    if names.size() >= MOST_NAMES {
        return None;
    }
    let mut dynamic = file.dynamic_symbols().take(1 << 12);
    let dynamic = dynamic.find(|symbol| symbol.name_bytes() == Ok(EXPORTED))?;
    let is_it = |name: usize| match table.get(name..) {
        Some(rest) => rest.starts_with(b"crosscall2\0"),
        None => false,
    };
    let (own, _) = functions.known.iter().find(|(_, name)| is_it(*name))?;
    Some(dynamic.address().wrapping_sub(own.start))
}

/// Reads the debug information of a file. Returns `None` if that takes too much time or memory.
pub(super) fn context(
    sections: impl Fn(SectionId) -> Bytes,
    limits: Limits,
) -> Option<Context<Bounded>> {
    let limits = Rc::new(limits);
    let load = |id| gimli::Result::Ok(Bounded::new(sections(id), limits.clone()));
    let dwarf = gimli::Dwarf::load(load).ok()?;
    if is_deep(&dwarf) {
        None
    } else {
        Context::from_dwarf(dwarf).ok()
    }
}

fn is_deep(dwarf: &gimli::Dwarf<Bounded>) -> bool {
    let mut units = dwarf.units();
    while let Ok(Some(unit)) = units.next() {
        let Ok(abbreviations) = dwarf.abbreviations(&unit) else {
            continue;
        };
        let Ok(mut entries) = unit.entries_raw(&abbreviations, None) else {
            continue;
        };
        while !entries.is_empty() {
            if entries.next_depth() > MOST_NESTED {
                return true;
            }
            match entries.read_abbreviation() {
                Ok(Some(entry)) if entries.skip_attributes(entry.attributes()).is_ok() => {}
                Ok(None) => {}
                _ => break,
            }
        }
    }
    false
}

/// Returns the functions at an address from the debug information, the innermost inlined one first.
pub(super) fn debug_frames(
    context: &Context<Bounded>,
    address: u64,
    module: &str,
) -> Option<Vec<Frame>> {
    let mut frames = context.find_frames(address).skip_all_loads().ok()?;
    let mut found = Vec::new();
    while let Some(frame) = frames.next().ok()? {
        if found.len() == MOST_INLINED {
            break;
        }
        let mut named = Frame::named(String::new(), module);
        if let Some(function) = &frame.function {
            let name = function.name.to_slice().unwrap_or_default();
            named.function = names::demangled(&name);
        }
        if let Some(location) = &frame.location {
            let file = location.file;
            named.file = file.map(|file| names::start_of(file.as_bytes()));
            named.line = location.line;
        }
        found.push(named);
    }
    Some(found)
}

/// Returns the content of a section, decompressed. It is empty if the section cannot be read, or is
/// not needed to find names and lines.
fn section(file: &Elf<'_>, id: SectionId, image: &Image) -> Bytes {
    let is_needed = !matches!(
        id,
        SectionId::DebugLoc
            | SectionId::DebugLocLists
            | SectionId::DebugMacinfo
            | SectionId::DebugMacro
    );
    let mut bytes = None;
    if is_needed {
        bytes = try_section(file, id, image);
    }
    EndianReader::new(bytes.unwrap_or_default(), NativeEndian)
}

fn try_section(file: &Elf<'_>, id: SectionId, image: &Image) -> Option<Rc<[u8]>> {
    let section = file.section_by_name(id.name())?;
    let range = section.compressed_file_range().ok()?;
    if range.format == CompressionFormat::None {
        return image.read(range.offset, range.uncompressed_size);
    }
    // A program reads its own `.eh_frame`, so only a malformed one is compressed.
    if id == SectionId::EhFrame {
        return None;
    }
    if !has_room(range.uncompressed_size) {
        return None;
    }
    let data = image.read(range.offset, range.compressed_size)?;
    let mut bytes: Rc<[u8]> = repeat_n(0, range.uncompressed_size as usize).collect();
    let to = Rc::make_mut(&mut bytes);
    match range.format {
        CompressionFormat::Zlib => ZlibDecoder::new(&*data).read_exact(to).ok()?,
        CompressionFormat::Zstandard => StreamingDecoder::new(&*data).ok()?.read_exact(to).ok()?,
        _ => return None,
    }
    Some(bytes)
}
