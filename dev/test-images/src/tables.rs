//! Writes the headers and the tables of an image, as in the ELF specification.

use std::ops::Range;

use crate::{Built, PT_DYNAMIC, PT_LOAD, PT_PHDR, Part, Spec, Sym, Value};

/// The number of buckets of each hash table.
const BUCKETS: u32 = 3;
/// `bloom_shift`.
const SHIFT: u32 = 6;

fn sysv_hash(name: &str) -> u32 {
    name.bytes().fold(0, |hash, byte| {
        let hash = (hash << 4) + u32::from(byte);
        let high = hash & 0xf000_0000;
        (hash ^ high >> 24) & !high
    })
}

fn gnu_hash(name: &str) -> u32 {
    name.bytes().fold(5381, |hash: u32, byte| {
        hash.wrapping_mul(33).wrapping_add(byte.into())
    })
}

pub(crate) fn gnu_bucket(symbol: &Sym<'_>) -> u32 {
    gnu_hash(symbol.name) % BUCKETS
}

pub(crate) fn write_headers(
    image: &mut Built<'_>,
    spec: &Spec<'_>,
    draft: &Built<'_>,
    tags: usize,
) {
    let (ehdr, phdr, addr) = if spec.wide { (64, 56, 8) } else { (52, 32, 4) };
    let count = spec.segments.len();
    image.bytes.extend(b"\x7fELF");
    let class = if spec.wide { 2 } else { 1 };
    let data = if spec.big_endian { 2 } else { 1 };
    image.numbers(
        "",
        1,
        &[("EI_CLASS", class), ("EI_DATA", data), ("EI_VERSION", 1)],
    );
    image.align(16);
    image.numbers("", 2, &[("e_type", 3), ("e_machine", spec.machine.into())]);
    image.numbers("", 4, &[("e_version", 1)]);
    image.numbers(
        "",
        addr,
        &[("e_entry", 0), ("e_phoff", ehdr), ("e_shoff", 0)],
    );
    image.numbers("", 4, &[("e_flags", 0)]);
    image.numbers(
        "",
        2,
        &[
            ("e_ehsize", ehdr),
            ("e_phentsize", phdr),
            ("e_phnum", count as u64),
        ],
    );
    image.numbers(
        "",
        2,
        &[("e_shentsize", 0), ("e_shnum", 0), ("e_shstrndx", 0)],
    );
    let dynamic_size = tags * 2 * addr;
    for &kind in &spec.segments {
        let (name, start, end) = match kind {
            PT_LOAD => ("PT_LOAD.".into(), spec.p_offset, draft.bytes.len()),
            PT_DYNAMIC => {
                let start = draft.at(Part::Dynamic);
                ("PT_DYNAMIC.".into(), start, start + dynamic_size)
            }
            PT_PHDR => {
                let start = ehdr as usize;
                let end = start + count * phdr as usize;
                ("PT_PHDR.".into(), start, end)
            }
            _ => (format!("PT_{kind:#x}."), 0, 0),
        };
        write_segment(image, spec, kind, &name, start..end);
    }
}

/// Writes the program header of a segment, which has these bytes of the image.
fn write_segment(
    image: &mut Built<'_>,
    spec: &Spec<'_>,
    kind: u32,
    name: &str,
    bytes: Range<usize>,
) {
    let addr = if spec.wide { 8 } else { 4 };
    let offset = bytes.start as u64;
    let address = spec.address(bytes.start);
    let size = bytes.end.saturating_sub(bytes.start) as u64;
    image.numbers(name, 4, &[("p_type", kind.into())]);
    if spec.wide {
        image.numbers(name, 4, &[("p_flags", 5)]);
    }
    let place = [
        ("p_offset", offset),
        ("p_vaddr", address),
        ("p_paddr", address),
    ];
    image.numbers(name, addr, &place);
    image.numbers(name, addr, &[("p_filesz", size), ("p_memsz", size)]);
    if !spec.wide {
        image.numbers(name, 4, &[("p_flags", 5)]);
    }
    image.addr(format!("{name}p_align"), 16);
}

pub(crate) fn write_hash(image: &mut Built<'_>, wide: bool) {
    let count = image.symbols.len() as u32 + 1;
    let mut buckets = [0; BUCKETS as usize];
    let mut chain = vec![0; count as usize];
    for (index, symbol) in image.symbols.iter().enumerate() {
        if !symbol.hashed() {
            continue;
        }
        // The symbol of index 0 is the null symbol.
        let index = index + 1;
        let bucket = sysv_hash(symbol.name) % BUCKETS;
        let bucket = &mut buckets[bucket as usize];
        chain[index] = std::mem::replace(bucket, index as u32);
    }
    let size = if wide { 8 } else { 4 };
    image.numbers(
        "hash.",
        size,
        &[("nbucket", BUCKETS.into()), ("nchain", count.into())],
    );
    image.words("hash.bucket", size, &buckets);
    image.words("hash.chain", size, &chain);
}

pub(crate) fn write_gnu_hash(image: &mut Built<'_>) {
    let bits = if image.wide { 64 } else { 32 };
    let first = image
        .symbols
        .iter()
        .take_while(|symbol| !symbol.hashed())
        .count();
    let hashed = image.symbols[first..].to_vec();
    let mut buckets = [0; BUCKETS as usize];
    let mut bloom = 0_u64;
    let mut chain = vec![];
    for (index, symbol) in hashed.iter().enumerate() {
        let hash = gnu_hash(symbol.name);
        bloom |= 1 << (hash % bits) | 1 << ((hash >> SHIFT) % bits);
        let bucket = &mut buckets[gnu_bucket(symbol) as usize];
        if *bucket == 0 {
            *bucket = (first + 1 + index) as u32;
        }
        let ends = hashed
            .get(index + 1)
            .is_none_or(|next| gnu_bucket(next) != gnu_bucket(symbol));
        chain.push(hash & !1 | u32::from(ends));
    }
    let nbuckets = BUCKETS.into();
    let symoffset = first as u64 + 1;
    image.numbers(
        "gnu_hash.",
        4,
        &[("nbuckets", nbuckets), ("symoffset", symoffset)],
    );
    image.numbers(
        "gnu_hash.",
        4,
        &[("bloom_size", 1), ("bloom_shift", SHIFT.into())],
    );
    image.addr("gnu_hash.bloom[0]", bloom);
    image.words("gnu_hash.bucket", 4, &buckets);
    image.words("gnu_hash.chain", 4, &chain);
}

pub(crate) fn write_symtab(image: &mut Built<'_>, strings: &str, null_value: u64) {
    let value = Value::Exactly(null_value);
    let null = Sym {
        blank: true,
        value,
        size: 0,
        kind: 0,
        bind: 0,
        shndx: 0,
        ..Sym::default()
    };
    let symbols = image.symbols.clone();
    for (index, symbol) in [null].iter().chain(&symbols).enumerate() {
        let name = string(strings, symbol.st_name());
        let prefix = format!("sym[{index}].");
        let place = [("st_value", symbol.st_value()), ("st_size", symbol.size)];
        image.numbers(&prefix, 4, &[("st_name", name)]);
        if !image.wide {
            image.numbers(&prefix, 4, &place);
        }
        image.numbers(
            &prefix,
            1,
            &[
                ("st_info", (symbol.bind << 4 | symbol.kind).into()),
                ("st_other", 0),
            ],
        );
        image.numbers(&prefix, 2, &[("st_shndx", symbol.shndx.into())]);
        if image.wide {
            image.numbers(&prefix, 8, &place);
        }
    }
}

pub(crate) fn write_versym(image: &mut Built<'_>, versions: &[&str]) {
    let symbols = image.symbols.clone();
    image.number("versym[0]", 0, 2);
    for (index, symbol) in symbols.iter().enumerate() {
        let mut versions = versions.iter();
        let version = versions.position(|version| Some(*version) == symbol.version);
        let version = version.unwrap_or(0) as u64;
        let number = if symbol.hashed() { version + 1 } else { 0 };
        // The symbol of index 0 is the null symbol.
        image.number(format!("versym[{}]", index + 1), number, 2);
    }
}

pub(crate) fn write_verdef(image: &mut Built<'_>, versions: &[&str], strings: &str) {
    for (index, version) in versions.iter().enumerate() {
        let prefix = format!("verdef[{index}].");
        let base = u64::from(index == 0);
        let last = index + 1 == versions.len();
        image.numbers(&prefix, 2, &[("vd_version", 1), ("vd_flags", base)]);
        image.numbers(&prefix, 2, &[("vd_ndx", index as u64 + 1), ("vd_cnt", 1)]);
        image.numbers(
            &prefix,
            4,
            &[("vd_hash", sysv_hash(version).into()), ("vd_aux", 20)],
        );
        image.numbers(&prefix, 4, &[("vd_next", if last { 0 } else { 28 })]);
        image.numbers(
            &prefix,
            4,
            &[("vda_name", string(strings, version)), ("vda_next", 0)],
        );
    }
}

pub(crate) fn write_dynamic(image: &mut Built<'_>, tags: &[(&str, u64, u64)]) {
    for (name, tag, value) in tags {
        image.addr(format!("{name}.d_tag"), *tag);
        image.addr(*name, *value);
    }
}

/// Returns the offset of a string in the table.
fn string(strings: &str, name: &str) -> u64 {
    strings
        .find(&format!("{name}\0"))
        .expect("the table has every string") as u64
}
