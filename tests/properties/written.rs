//! Images that the `object` crate writes: it shares nothing with our builder, and stores a name that another ends with
//! inside that other.

use object::Endianness;
use object::elf;
use object::write::StringId;
use object::write::elf::{FileHeader, ProgramHeader, Sym as Entry, Verdef, Writer};

use super::image::{ABS, CODE, FUNC, LOCAL, NOTYPE, SONAME, Spec, Sym, UNDEF, Value, WEAK};
use super::shapes::VERSIONS;
use super::{check, promises, shapes};

const BUCKETS: u32 = 3;

/// Name, version, value, size, whether weak.
type Row = (String, Option<String>, u64, u64, bool);

fn hashed(symbol: &Sym<'_>) -> bool {
    symbol.bind != LOCAL && symbol.shndx != UNDEF
}

fn gnu_hash(symbol: &Sym<'_>) -> u32 {
    elf::gnu_hash(symbol.name.as_bytes())
}

/// The strings of an image, as the writer knows them.
struct Strings {
    soname: StringId,
    versions: Vec<StringId>,
    symbols: Vec<Option<StringId>>,
}

/// Where the writer puts the parts.
#[derive(Clone, Copy)]
struct Places {
    hash: usize,
    gnu_hash: usize,
    dynsym: usize,
    dynstr: usize,
    versym: usize,
    verdef: usize,
    dynamic: usize,
    text: usize,
    end: usize,
}

fn reserve(writer: &mut Writer<'_>, spec: &Spec<'static>, symbols: &[Sym<'static>]) -> (Strings, Places) {
    let count = symbols.len() as u32 + 1;
    let strings = Strings {
        soname: writer.add_dynamic_string(SONAME.as_bytes()),
        versions: VERSIONS.iter().map(|version| writer.add_dynamic_string(version.as_bytes())).collect(),
        symbols: symbols
            .iter()
            .map(|symbol| (!symbol.blank).then(|| writer.add_dynamic_string(symbol.name.as_bytes())))
            .collect(),
    };
    writer.reserve_null_dynamic_symbol_index();
    for _ in symbols {
        writer.reserve_dynamic_symbol_index();
    }
    writer.reserve_file_header();
    writer.reserve_program_headers(2);
    let hashed = symbols.iter().filter(|symbol| hashed(symbol)).count() as u32;
    let mut at = Places {
        hash: if spec.sysv_hash { writer.reserve_hash(BUCKETS, count) } else { 0 },
        gnu_hash: if spec.gnu_hash { writer.reserve_gnu_hash(1, BUCKETS, hashed) } else { 0 },
        dynsym: writer.reserve_dynsym(),
        dynstr: writer.reserve_dynstr(),
        versym: if spec.versions { writer.reserve_gnu_versym() } else { 0 },
        verdef: if spec.versions { writer.reserve_gnu_verdef(5, 5) } else { 0 },
        dynamic: 0,
        text: 0,
        end: 0,
    };
    at.dynamic = writer.reserve_dynamic(tags(spec, at, 0).len());
    at.text = writer.reserve(symbols.len() * CODE as usize, 16);
    at.end = at.text + symbols.len() * CODE as usize;
    (strings, at)
}

/// The dynamic section, without the tables that the image has not.
fn tags(spec: &Spec<'_>, at: Places, strings: usize) -> Vec<(u32, u64)> {
    let address = |offset: usize| spec.p_vaddr.wrapping_add(offset as u64);
    let optional = [
        (spec.sysv_hash, elf::DT_HASH, address(at.hash)),
        (spec.gnu_hash, elf::DT_GNU_HASH, address(at.gnu_hash)),
        (spec.versions, elf::DT_VERSYM, address(at.versym)),
        (spec.versions, elf::DT_VERDEF, address(at.verdef)),
        (spec.versions, elf::DT_VERDEFNUM, 5),
        (true, elf::DT_SYMTAB, address(at.dynsym)),
        (true, elf::DT_STRTAB, address(at.dynstr)),
        (true, elf::DT_STRSZ, strings as u64),
        (true, elf::DT_NULL, 0),
    ];
    optional.into_iter().filter(|(there, ..)| *there).map(|(_, tag, value)| (tag, value)).collect()
}

fn write_headers(writer: &mut Writer<'_>, spec: &Spec<'_>, at: Places) {
    let (e_type, e_machine) = (elf::ET_DYN, spec.machine);
    let header = FileHeader { os_abi: 0, abi_version: 0, e_type, e_machine, e_entry: 0, e_flags: 0 };
    writer.write_file_header(&header).unwrap();
    writer.write_align_program_headers();
    let dynamic = tags(spec, at, 0).len() * if spec.wide { 16 } else { 8 };
    for (p_type, start, size) in [(elf::PT_LOAD, 0, at.end), (elf::PT_DYNAMIC, at.dynamic, dynamic)] {
        let (p_offset, size) = (start as u64, size as u64);
        let address = spec.p_vaddr.wrapping_add(p_offset);
        writer.write_program_header(&ProgramHeader {
            p_type,
            p_flags: elf::PF_R | elf::PF_X,
            p_offset,
            p_vaddr: address,
            p_paddr: address,
            p_filesz: size,
            p_memsz: size,
            p_align: 16,
        });
    }
}

fn write_hashes(writer: &mut Writer<'_>, spec: &Spec<'_>, symbols: &[Sym<'_>]) {
    let count = symbols.len() as u32 + 1;
    let first = symbols.iter().filter(|symbol| !hashed(symbol)).count();
    if spec.sysv_hash {
        writer.write_hash(BUCKETS, count, |index| {
            let symbol = symbols.get((index as usize).checked_sub(1)?)?;
            hashed(symbol).then(|| elf::hash(symbol.name.as_bytes()))
        });
    }
    if spec.gnu_hash {
        let hash = |index: u32| gnu_hash(&symbols[first + index as usize]);
        writer.write_gnu_hash(first as u32 + 1, 6, 1, BUCKETS, count - 1 - first as u32, hash);
    }
}

fn write_versions(writer: &mut Writer<'_>, strings: &Strings, symbols: &[Sym<'_>]) {
    writer.write_null_gnu_versym();
    for symbol in symbols {
        let index = VERSIONS.iter().position(|version| Some(*version) == symbol.version);
        writer.write_gnu_versym(index.map_or(1, |index| index as u16 + 2));
    }
    writer.write_align_gnu_verdef();
    for (name, index) in [strings.soname].iter().chain(&strings.versions).zip(1..) {
        let flags = if index == 1 { elf::VER_FLG_BASE } else { 0 };
        writer.write_gnu_verdef(&Verdef { version: 1, flags, index, aux_count: 1, name: *name });
    }
}

/// The image, and the symbols in it that can be called.
fn write(spec: &Spec<'static>) -> (Vec<u8>, Vec<Row>) {
    let mut symbols = spec.symbols.clone();
    symbols.sort_by_key(|symbol| (hashed(symbol), gnu_hash(symbol) % BUCKETS));
    let mut bytes = Vec::new();
    let endian = if spec.big_endian { Endianness::Big } else { Endianness::Little };
    let mut writer = Writer::new(endian, spec.wide, &mut bytes);
    let (strings, at) = reserve(&mut writer, spec, &symbols);
    write_headers(&mut writer, spec, at);
    write_hashes(&mut writer, spec, &symbols);
    writer.write_null_dynamic_symbol();
    let mut rows = Vec::new();
    for (index, (symbol, &name)) in symbols.iter().zip(&strings.symbols).enumerate() {
        let code = spec.p_vaddr.wrapping_add(at.text as u64 + CODE * index as u64);
        let st_value = if let Value::Exactly(value) = symbol.value { value } else { code };
        let st_info = symbol.bind << 4 | symbol.kind;
        let (st_shndx, st_size) = (symbol.shndx, symbol.size);
        let entry = Entry { name, section: None, st_info, st_other: 0, st_shndx, st_value, st_size };
        writer.write_dynamic_symbol(&entry);
        let callable = hashed(symbol) && matches!(symbol.kind, FUNC | NOTYPE) && symbol.shndx != ABS;
        if callable && st_value.wrapping_sub(spec.p_vaddr) < at.end as u64 {
            let version = symbol.version.filter(|_| spec.versions).map(str::to_owned);
            let name = if symbol.blank { "" } else { symbol.name };
            rows.push((name.to_owned(), version, st_value, st_size, symbol.bind == WEAK));
        }
    }
    writer.write_dynstr();
    if spec.versions {
        write_versions(&mut writer, &strings, &symbols);
    }
    writer.write_align_dynamic();
    let size = writer.dynstr_len();
    for (tag, value) in tags(spec, at, size) {
        writer.write_dynamic(tag, value);
    }
    writer.pad_until(at.end);
    (bytes, rows)
}

#[test]
fn an_image_of_another_writer_shows_its_symbols() {
    // The writer knows no 64-bit words in `DT_HASH`.
    let cases = shapes::spec_with(|spec| !spec.wide_hash);
    let images = check(8_000, &cases, |spec| {
        let (bytes, rows) = write(&spec);
        let image = promises::keep(&bytes).expect("a sound image");
        let seen = image.symbols().map(|symbol| {
            let string = |string: &std::ffi::CStr| string.to_str().unwrap().to_owned();
            let (name, version) = (string(symbol.name()), symbol.version().map(string));
            (name, version, symbol.value(), symbol.size(), symbol.is_weak())
        });
        assert_eq!(seen.collect::<Vec<_>>(), rows);
        !rows.is_empty()
    });
    assert!(images > 0.5, "{images} of them have symbols");
}
