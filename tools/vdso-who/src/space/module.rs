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
    BaseAddresses, CieOrFde, EhFrame, EhFrameOffset, EndianReader, NativeEndian, Reader as _, SectionId,
    UnwindContext, UnwindSection as _, UnwindTableRow,
};
use object::{
    CompressionFormat, File, Object as _, ObjectSection as _, ObjectSegment as _, ObjectSymbol as _,
    ObjectSymbolTable as _, SymbolIndex, SymbolKind,
};
use ruzstd::StreamingDecoder;

use super::bounded::{Bounded, Bytes, Limits, has_room};
use super::{Frame, debug_file, go, names};

/// A file.
pub(super) struct Module {
    bytes: Rc<[u8]>,
    /// The file of its debug information and of its symbols, or the same.
    debug_bytes: Rc<[u8]>,
    /// The loaded bytes of the file, and their first address.
    segments: Vec<(Range<u64>, u64)>,
    /// Sorted.
    symbols: Vec<Symbol>,
    eh_frame: (EhFrame<Bytes>, BaseAddresses),
    /// See [`tables`]. Sorted.
    tables: Vec<(Range<u64>, usize)>,
    /// None if there is no debug information. It is parsed when it is first needed.
    debug: OnceCell<Option<Context<Bounded>>>,
}

/// A function.
pub(super) struct Symbol {
    pub(super) range: Range<u64>,
    name: Name,
}

/// Where a name is. Many symbols can share one long name, so no name is kept.
#[derive(Clone, Copy)]
enum Name {
    /// In the symbol table of the debug file.
    Static(SymbolIndex),
    Dynamic(SymbolIndex),
    /// At an offset in the file, in Go's table.
    Go(usize),
}

/// More symbols of a file are ignored.
const MOST_SYMBOLS: usize = 1 << 22;

/// The shared parts of unwind tables that are kept.
const MOST_SHARED: usize = 1 << 16;

/// Debug information that is nested deeper is ignored, because addr2line recurses.
const MOST_NESTED: isize = 512;

/// More functions that are inlined into one another are ignored.
const MOST_INLINED: usize = 64;

impl Module {
    /// Parses a file. `find` reads files of debug information.
    pub(super) fn parse(
        bytes: Rc<[u8]>,
        path: &str,
        find: impl Fn(&Path) -> Option<Rc<[u8]>>,
        asks_debuginfod: bool,
    ) -> Option<Self> {
        let file = File::parse(&*bytes).ok()?;
        let segments = file.segments().map(|segment| {
            let (offset, size) = segment.file_range();
            (offset..offset.saturating_add(size), segment.address())
        });
        let segments = segments.collect();
        let debug_bytes = debug_file::of(&file, Path::new(path), find, asks_debuginfod);
        let debug_bytes = debug_bytes.unwrap_or_else(|| bytes.clone());
        let debug = File::parse(&*debug_bytes).ok()?;
        let symbols = debug.symbols().map(|symbol| (symbol, Name::Static as fn(_) -> _));
        let dynamic = file.dynamic_symbols().map(|symbol| (symbol, Name::Dynamic as fn(_) -> _));
        let mut symbols: Vec<_> = symbols
            .chain(dynamic)
            .filter(|(symbol, _)| symbol.kind() == SymbolKind::Text && symbol.is_definition())
            .filter_map(|(symbol, name)| {
                let range = symbol.address()..symbol.address().checked_add(symbol.size())?;
                Some(Symbol { range, name: name(symbol.index()) })
            })
            .take(MOST_SYMBOLS)
            .collect();
        // A stripped program with cgo has dynamic symbols of C.
        if !symbols.iter().any(|symbol| matches!(symbol.name, Name::Static(_))) {
            symbols.extend(go_symbols(&file).unwrap_or_default());
        }
        symbols.sort_by_key(|symbol| (symbol.range.start, Reverse(symbol.range.end)));
        symbols.dedup_by_key(|symbol| symbol.range.start);
        let eh_frame = eh_frame(&file, &bytes);
        let (tables, debug) = (tables(&eh_frame), OnceCell::new());
        Some(Self { bytes, debug_bytes, segments, symbols, eh_frame, tables, debug })
    }

    /// The address of a loaded byte of the file.
    pub(super) fn address(&self, offset: u64) -> Option<u64> {
        let (range, address) = self.segments.iter().find(|(range, _)| range.contains(&offset))?;
        Some(address.wrapping_add(offset - range.start))
    }

    /// The code from an address on, at most so many bytes.
    pub(super) fn code(&self, address: u64, most: usize) -> Option<&[u8]> {
        let (range, start) = self.segments.iter().find(|(range, start)| {
            address.checked_sub(*start).is_some_and(|offset| offset < range.end - range.start)
        })?;
        let offset = range.start + (address - start);
        let end = range.end.min(offset.saturating_add(most as u64));
        self.bytes.get(offset as usize..end as usize)
    }

    /// The function that contains an address. One without a size ends at the next.
    pub(super) fn symbol(&self, address: u64) -> Option<&Symbol> {
        let next = self.symbols.partition_point(|symbol| symbol.range.start <= address);
        // An outer symbol may contain others, such as a local label's.
        let mut outer = self.symbols[..next].iter().rev().take(8);
        outer.find(|symbol| symbol.range.contains(&address) || symbol.range.is_empty())
    }

    /// The functions at an address, the innermost inlined one first. Empty if there is no symbol.
    pub(super) fn frames(&self, address: u64, module: &str) -> Vec<Frame> {
        let symbol = self.symbol(address).and_then(|symbol| self.name(symbol));
        let context = self.debug.get_or_init(|| self.context()).as_ref();
        let mut found =
            context.and_then(|context| debug_frames(context, address, module)).unwrap_or_default();
        // The outermost function of the debug information may have no name.
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
        self.symbols.iter().filter_map(|symbol| Some((self.name(symbol)?, symbol.range.start)))
    }

    fn name(&self, symbol: &Symbol) -> Option<String> {
        let file = |bytes| File::parse(bytes).ok();
        Some(names::demangled(match symbol.name {
            Name::Static(index) => {
                file(&*self.debug_bytes)?.symbol_table()?.symbol_by_index(index).ok()?.name_bytes().ok()?
            }
            Name::Dynamic(index) => {
                file(&*self.bytes)?.dynamic_symbol_table()?.symbol_by_index(index).ok()?.name_bytes().ok()?
            }
            Name::Go(at) => self.bytes.get(at..)?.split(|byte| *byte == 0).next()?,
        }))
    }

    fn context(&self) -> Option<Context<Bounded>> {
        let file = File::parse(&*self.debug_bytes).ok()?;
        file.section_by_name(".debug_info").or_else(|| file.section_by_name(".zdebug_info"))?;
        let whole = EndianReader::new(self.debug_bytes.clone(), NativeEndian);
        context(|id| section(&file, id, &whole), Limits::default())
    }

    /// How the registers of the caller are found at an address.
    pub(super) fn unwind_row(&self, address: u64) -> Option<UnwindTableRow<usize>> {
        let next = self.tables.partition_point(|(range, _)| range.start <= address);
        let (_, offset) = self.tables[..next].last().filter(|(range, _)| range.contains(&address))?;
        let (frames, bases) = &self.eh_frame;
        let entry = frames.fde_from_offset(bases, EhFrameOffset(*offset), EhFrame::cie_from_offset).ok()?;
        let mut context = UnwindContext::new();
        entry.unwind_info_for_address(frames, bases, &mut context, address).ok().cloned()
    }
}

/// The unwind tables, and the addresses at which they and the code begin.
fn eh_frame(file: &File<'_>, bytes: &Rc<[u8]>) -> (EhFrame<Bytes>, BaseAddresses) {
    let whole = EndianReader::new(bytes.clone(), NativeEndian);
    let mut frames = EhFrame::from(section(file, SectionId::EhFrame, &whole));
    frames.set_address_size(if file.is_64() { 8 } else { 4 });
    let start = |name| file.section_by_name(name).map_or(0, |section| section.address());
    (frames, BaseAddresses::default().set_text(start(".text")).set_eh_frame(start(".eh_frame")))
}

/// The addresses of the functions with unwind tables, and where their tables are. Static programs
/// have no `.eh_frame_hdr`.
fn tables((frames, bases): &(EhFrame<Bytes>, BaseAddresses)) -> Vec<(Range<u64>, usize)> {
    let mut entries = frames.entries(bases);
    let mut tables = Vec::new();
    // Many tables share one, which can be long.
    let mut known = HashMap::new();
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        if known.len() >= MOST_SHARED {
            known.clear();
        }
        let entry = partial.parse(|section, bases, offset| {
            known.entry(offset.0).or_insert_with(|| section.cie_from_offset(bases, offset)).clone()
        });
        tables.extend(entry.ok().map(|entry| (entry.initial_address()..entry.end_address(), entry.offset())));
    }
    tables.sort_by_key(|(range, _)| range.start);
    tables
}

fn go_symbols(file: &File<'_>) -> Option<Vec<Symbol>> {
    let table =
        [".gopclntab", ".data.rel.ro.gopclntab"].iter().find_map(|name| file.section_by_name(name))?;
    let (start, bytes) = (table.file_range()?.0 as usize, table.data().ok()?);
    let text = file.section_by_name(".text")?.address();
    let go::Functions { known, has_text } = go::functions(bytes, text, MOST_SYMBOLS)?;
    // With cgo, C's functions are the first in .text. Then a function of Go has a dynamic symbol.
    let names = file.section_by_name(".dynstr").map_or(0, |names| names.size());
    let shift = if has_text || names == 0 {
        0
    } else {
        let mut dynamic = file.dynamic_symbols().take(if names < 1 << 20 { 1 << 12 } else { 0 });
        let dynamic = dynamic.find(|symbol| symbol.name_bytes() == Ok(b"crosscall2"))?;
        let is_it = |at: usize| bytes.get(at..).is_some_and(|name| name.starts_with(b"crosscall2\0"));
        let (own, _) = known.iter().find(|(_, name)| is_it(*name))?;
        dynamic.address().wrapping_sub(own.start)
    };
    let symbol = |(range, name): (Range<u64>, usize)| Symbol {
        range: range.start.wrapping_add(shift)..range.end.wrapping_add(shift),
        name: Name::Go(start.wrapping_add(name)),
    };
    Some(known.into_iter().map(symbol).collect())
}

/// The debug information of a file. None if reading it takes too much of something.
pub(super) fn context(sections: impl Fn(SectionId) -> Bytes, limits: Limits) -> Option<Context<Bounded>> {
    let limits = Rc::new(limits);
    let load = |id| gimli::Result::Ok(Bounded::new(sections(id), limits.clone()));
    let dwarf = gimli::Dwarf::load(load).ok()?;
    if is_deep(&dwarf) { None } else { Context::from_dwarf(dwarf).ok() }
}

fn is_deep(dwarf: &gimli::Dwarf<Bounded>) -> bool {
    let mut units = dwarf.units();
    while let Ok(Some(unit)) = units.next() {
        let Ok(abbreviations) = dwarf.abbreviations(&unit) else { continue };
        let Ok(mut entries) = unit.entries_raw(&abbreviations, None) else { continue };
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

/// The functions at an address, the innermost inlined one first.
pub(super) fn debug_frames(context: &Context<Bounded>, address: u64, module: &str) -> Option<Vec<Frame>> {
    let mut frames = context.find_frames(address).skip_all_loads().ok()?;
    let mut found = Vec::new();
    while let Some(frame) = frames.next().ok()?.filter(|_| found.len() < MOST_INLINED) {
        let name = frame.function.as_ref().and_then(|function| function.name.to_slice().ok());
        let location = frame.location.as_ref();
        found.push(Frame {
            file: location.and_then(|location| location.file).map(|file| names::shortened(file.as_bytes())),
            line: location.and_then(|location| location.line),
            ..Frame::named(names::demangled(&name.unwrap_or_default()), module)
        });
    }
    Some(found)
}

/// A section, decompressed. Empty if it cannot be read.
fn section(file: &File<'_>, id: SectionId, whole: &Bytes) -> Bytes {
    try_section(file, id, whole).unwrap_or_else(|| whole.range(0..0))
}

fn try_section(file: &File<'_>, id: SectionId, whole: &Bytes) -> Option<Bytes> {
    let section = file.section_by_name(id.name())?;
    let data = section.compressed_data().ok()?;
    if data.format == CompressionFormat::None {
        let (offset, size) = section.file_range()?;
        return Some(whole.range(offset as usize..(offset + size) as usize));
    }
    if !has_room(data.uncompressed_size) {
        return None;
    }
    let mut bytes: Rc<[u8]> = repeat_n(0, data.uncompressed_size as usize).collect();
    let to = Rc::make_mut(&mut bytes);
    match data.format {
        CompressionFormat::Zlib => ZlibDecoder::new(data.data).read_exact(to).ok()?,
        CompressionFormat::Zstandard => StreamingDecoder::new(data.data).ok()?.read_exact(to).ok()?,
        _ => return None,
    }
    Some(EndianReader::new(bytes, whole.endian()))
}
