//! Malformed images: each flaw on which some parser crashed, hung or read outside, with the error or
//! the symbols that must come of it.

use test_images::kinds::{aarch64, arm, described, i386, s390, seen, x86_64};
use test_images::{Built, PT_DYNAMIC, PT_LOAD, Part, SONAME, Spec, Sym};
use vdso_time::elf::{Image, ParseError};

use Expected::{Lacks, Refused, Unharmed, Unversioned};
use Values::{Are, Near, Outside, Overflow};

const V: &str = "LINUX_2.6";

/// Numbers at which sums and products overflow.
const HUGE: &[u64] = &[0x4000_0000, 0x7fff_ffff, 0x8000_0000, 0xffff_fff0, 0xffff_ffff, u64::MAX];

/// What the parser makes of a malformed image.
#[derive(Clone, Copy)]
enum Expected {
    Refused(ParseError),
    /// All symbols of the description.
    Unharmed,
    /// All symbols, without versions.
    Unversioned,
    /// All symbols but this entry of the table.
    Lacks(usize),
}

/// The values to which a field is set, one after the other.
enum Values {
    Are(&'static [u64]),
    /// The old value plus each of these.
    Near(&'static [i64]),
    /// Addresses before, after and far from the image.
    Outside,
    /// The values that overflow to 0 and 1 in a sum with this.
    Overflow(fn(&Built<'_>) -> u64),
}

/// A field, its values, and what the parser makes of each.
type Flaw = (&'static str, Values, Expected);

impl Values {
    fn of(&self, built: &Built<'_>, field: &str) -> Vec<u64> {
        let start = built.get("PT_LOAD.p_vaddr");
        let end = start + built.bytes.len() as u64;
        match self {
            Are(values) => values.to_vec(),
            Near(steps) => steps.iter().map(|step| built.get(field).wrapping_add_signed(*step)).collect(),
            Outside => vec![start - 1, end, 1, 0x8000_0000, u64::MAX - 7, u64::MAX],
            Overflow(other) => [0, 1].map(|sum: u64| sum.wrapping_sub(other(built))).to_vec(),
        }
    }
}

/// Fails unless the parser makes this of the image.
#[track_caller]
fn assert_parsed(spec: &Spec<'_>, sound: &Built<'_>, bytes: &[u8], expected: Expected, what: &str) {
    let expected = match expected {
        Refused(reason) => Err(reason),
        Unharmed => Ok(described(spec, sound)),
        Unversioned => Ok(described(&Spec { versions: false, ..spec.clone() }, sound)),
        Lacks(index) => {
            let mut rows = described(spec, sound);
            let hidden = &sound.symbols[index - 1];
            rows.remove(sound.callable().position(|symbol| symbol == hidden).unwrap());
            Ok(rows)
        }
    };
    let symbols = Image::parse(bytes).map(|image| seen(image.symbols()));
    assert_eq!(symbols, expected, "{what}, machine {}", spec.machine);
}

#[track_caller]
fn check(images: &[Spec<'_>], flaws: &[Flaw]) {
    for spec in images {
        let sound = spec.build();
        for (field, values, expected) in flaws {
            for value in values.of(&sound, field) {
                let mut built = sound.clone();
                built.set(field, value);
                assert_parsed(spec, &sound, &built.bytes, *expected, &format!("{field} is {value:#x}"));
            }
        }
    }
}

/// Makes a flaw that is more than one field.
#[track_caller]
fn spoil(images: &[Spec<'_>], expected: Expected, spoil: impl Fn(&mut Built<'_>)) {
    for spec in images {
        let sound = spec.build();
        let mut built = sound.clone();
        spoil(&mut built);
        assert_parsed(spec, &sound, &built.bytes, expected, "spoilt");
    }
}

/// Both classes, both byte orders, each hash table and both, and addresses that are not offsets.
fn all() -> [Spec<'static>; 4] {
    [arm(), Spec { big_endian: true, gnu_hash: true, ..arm() }, aarch64(), x86_64()]
        .map(|spec| Spec { p_vaddr: 0x2000, ..spec })
}

/// Images in which the parser uses `DT_HASH`: both classes, and 64-bit words.
fn sysv() -> [Spec<'static>; 3] {
    [arm(), x86_64(), s390()].map(|spec| Spec { p_vaddr: 0x2000, ..spec })
}

/// Images in which the parser uses `DT_GNU_HASH`: both classes.
fn gnu() -> [Spec<'static>; 2] {
    [arm(), aarch64()].map(|spec| Spec { p_vaddr: 0x2000, sysv_hash: false, gnu_hash: true, ..spec })
}

#[test]
fn malformed_headers_are_refused() {
    const HEADERS: Expected = Refused(ParseError::ProgramHeaders);
    let flaws = [
        ("EI_CLASS", Are(&[0, 3, 0xff]), Refused(ParseError::Class)),
        ("EI_DATA", Are(&[0, 3, 0xff]), Refused(ParseError::ByteOrder)),
        ("e_phoff", Are(&[4096, 1 << 20, 0x7fff_ffff, 0xffff_ffff, u64::MAX - 31, u64::MAX]), HEADERS),
        ("e_phoff", Overflow(|built| built.get("e_phnum") * built.get("e_phentsize") + 64), HEADERS),
        ("e_phnum", Are(&[128, 0x8000, 0xffff]), HEADERS),
        ("e_phnum", Are(&[0]), Refused(ParseError::NoDynamicSegment)),
        ("e_phentsize", Are(&[0, 1, 31]), HEADERS),
        ("e_phentsize", Near(&[-1]), HEADERS),
        // The headers then lie where the image says, at odd offsets.
        ("e_phentsize", Near(&[1]), Refused(ParseError::NoDynamicSegment)),
        ("PT_DYNAMIC.p_type", Are(&[0]), Refused(ParseError::NoDynamicSegment)),
    ];
    check(&all(), &flaws);
    for at in 0..4 {
        spoil(&all(), Refused(ParseError::NotElf), |built| built.bytes[at] ^= 1);
    }
}

#[test]
fn program_headers_end_in_the_first_page() {
    for (more, expected) in [(0, Unharmed), (1, Refused(ParseError::ProgramHeaders))] {
        spoil(&all(), expected, |built| {
            let (from, size) =
                (built.get("e_phoff") as usize, built.get("e_phnum") * built.get("e_phentsize"));
            let to = 4096 - size + more;
            built.bytes.resize(8192, 0);
            built.bytes.copy_within(from..from + size as usize, to as usize);
            built.set("e_phoff", to);
        });
    }
}

#[test]
fn the_size_of_a_program_header_may_be_larger_than_its_fields() {
    let segments = vec![PT_LOAD, PT_DYNAMIC, PT_DYNAMIC, 0];
    spoil(&[Spec { segments, ..aarch64() }], Unharmed, |built| {
        built.set("e_phentsize", 112).set("e_phnum", 2);
    });
}

#[test]
fn an_image_cut_short_is_refused_at_every_length() {
    for spec in all() {
        let built = spec.build();
        let headers = built.get("e_phoff") + built.get("e_phnum") * built.get("e_phentsize");
        for len in 0..built.bytes.len() {
            let reason = match len {
                0..4 => ParseError::NotElf,
                4 | 5 => ParseError::Truncated,
                _ if (len as u64) < headers => ParseError::ProgramHeaders,
                _ => ParseError::Truncated,
            };
            let bytes = &built.bytes[..len];
            assert_eq!(Image::parse(bytes).map(|_| ()), Err(reason), "{len} bytes");
            let extent = if len as u64 >= headers { Ok(built.bytes.len()) } else { Err(reason) };
            assert_eq!(Image::extent(bytes), extent, "{len} bytes");
        }
    }
}

#[test]
fn the_loaded_segment_must_hold_the_dynamic_segment() {
    const LOAD: Expected = Refused(ParseError::LoadSegment);
    const FAR: &[u64] = &[1 << 20, 0xffff_ffff, u64::MAX];
    let moved = [arm(), x86_64()].map(|spec| Spec { p_offset: 0x240, p_vaddr: 0x240, ..spec });
    let flaws = [
        ("PT_LOAD.p_type", Are(&[0]), LOAD),
        ("PT_LOAD.p_filesz", Are(&[0, 1, 0x10]), LOAD),
        ("PT_LOAD.p_filesz", Overflow(|built| built.get("PT_LOAD.p_offset")), LOAD),
        ("PT_LOAD.p_memsz", Near(&[-1]), LOAD),
        ("PT_LOAD.p_offset", Are(FAR), LOAD),
        ("PT_LOAD.p_offset", Overflow(|built| built.get("PT_LOAD.p_filesz")), LOAD),
        ("PT_DYNAMIC.p_offset", Are(FAR), LOAD),
        ("PT_DYNAMIC.p_offset", Overflow(|built| built.get("PT_DYNAMIC.p_filesz")), LOAD),
        ("PT_DYNAMIC.p_filesz", Are(FAR), LOAD),
        ("PT_DYNAMIC.p_filesz", Overflow(|built| built.get("PT_DYNAMIC.p_offset")), LOAD),
    ];
    check(&[&all()[..], &moved].concat(), &flaws);
    // More memory than bytes in the file is .bss.
    check(&[x86_64()], &[("PT_LOAD.p_memsz", Are(&[u64::MAX]), Unharmed)]);
}

#[test]
fn an_image_is_at_most_1_mib_and_as_long_as_its_segment() {
    for more in [1, 4096] {
        spoil(&all(), Refused(ParseError::Truncated), |built| {
            built.resize(built.get("PT_LOAD.p_filesz") + more);
        });
    }
    for size in [(1 << 20) + 1, 0x7fff_ffff, 0xffff_ffff] {
        spoil(&all(), Refused(ParseError::TooLarge), |built| _ = built.resize(size));
    }
    spoil(&[Spec { extent: 1 << 20, ..x86_64() }], Unharmed, |built| {
        assert_eq!(Image::extent(&built.bytes), Ok(1 << 20));
    });
}

#[test]
fn malformed_symbol_and_string_tables_are_refused() {
    const STRINGS: Expected = Refused(ParseError::StringTable);
    const SYMBOLS: Expected = Refused(ParseError::SymbolTable);
    let flaws = [
        ("DT_STRTAB", Outside, STRINGS),
        ("DT_STRSZ", Are(&[1 << 20, 0x7fff_ffff, 0xffff_ffff, u64::MAX]), STRINGS),
        ("DT_SYMTAB", Outside, SYMBOLS),
        ("DT_SYMENT", Are(&[1, 15, 17, 25, u64::MAX]), SYMBOLS),
    ];
    check(&all(), &flaws);
    check(&[arm(), x86_64()], &[("DT_STRSZ", Overflow(|built| built.get("DT_STRTAB") + 16), STRINGS)]);
    spoil(&all(), STRINGS, |built| {
        let (start, size) = (built.at(Part::Strtab), built.get("DT_STRSZ") as usize);
        built.bytes[start..][..size].fill(b'a');
    });
}

#[test]
fn a_malformed_symbol_is_hidden_alone() {
    let flaws = [
        ("sym[3].st_name", Are(&[4096, 0x7fff_ffff, 0xffff_ffff]), Lacks(3)),
        ("sym[3].st_value", Outside, Lacks(3)),
        ("sym[3].st_size", Are(&[32]), Unharmed),
    ];
    check(&[Spec { p_vaddr: 0x2000, ..x86_64() }], &flaws);
    let symbols = vec![Sym { size: u64::MAX, ..Sym::func("clock", V) }];
    spoil(&[Spec { symbols, ..x86_64() }], Unharmed, |_| {});
}

#[test]
fn a_symbol_with_an_unterminated_name_is_hidden_alone() {
    // The shortest string is the last of the table.
    let symbols = ["first", "second", "last"].map(|name| Sym::func(name, V)).to_vec();
    let order = Part::with_last(&[Part::Strtab]);
    let spec = Spec { symbols, order, versions: false, gnu_hash: false, ..Spec::default() };
    check(&[spec], &[("DT_STRSZ", Near(&[-1]), Lacks(3))]);
}

#[test]
fn a_name_has_at_most_1023_bytes() {
    for (size, expected) in [(1023, Unharmed), (1024, Lacks(1))] {
        let name = "n".repeat(size);
        let symbols = vec![Sym::func(&name, V), Sym::func("short", V)];
        let spec = Spec { symbols, gnu_hash: false, ..Spec::default() };
        let sound = spec.build();
        assert_parsed(&spec, &sound, &sound.bytes, expected, &format!("{size} bytes"));
        let image = Image::parse(&sound.bytes).unwrap();
        assert_eq!(image.symbol(&name, None).is_some(), size == 1023);
        assert_eq!(image.symbol("short", Some(&name)), None);
    }
}

#[test]
fn malformed_sysv_hash_tables_are_refused() {
    const HASH: Expected = Refused(ParseError::SysvHash);
    let flaws = [
        ("DT_HASH", Outside, HASH),
        ("hash.nbucket", Are(&[0]), Unharmed),
        ("hash.nbucket", Are(HUGE), HASH),
        ("hash.nbucket", Overflow(|built| built.get("hash.nchain") + 2), HASH),
        ("hash.nchain", Are(HUGE), HASH),
        ("hash.nchain", Overflow(|built| built.get("hash.nbucket") + 2), HASH),
        // The chains are not followed.
        ("hash.bucket[1]", Are(HUGE), Unharmed),
        ("hash.chain[1]", Are(&[1]), Unharmed),
    ];
    check(&sysv(), &flaws);
    let last = sysv().map(|spec| Spec { order: Part::with_last(&[Part::Hash]), ..spec });
    check(&last, &[("PT_LOAD.p_filesz", Near(&[0]), Unharmed), ("PT_LOAD.p_filesz", Near(&[-1]), HASH)]);
}

#[test]
fn malformed_gnu_hash_tables_are_refused() {
    const HASH: Expected = Refused(ParseError::GnuHash);
    let flaws = [
        ("DT_GNU_HASH", Outside, HASH),
        ("gnu_hash.nbuckets", Are(HUGE), HASH),
        ("gnu_hash.bloom_size", Are(&[0x1000, 0x1fff_ffff]), HASH),
        ("gnu_hash.bloom_size", Are(HUGE), HASH),
        // The size in bytes is the old one in 32 bits.
        ("gnu_hash.bloom_size", Near(&[1 << 29]), HASH),
        ("gnu_hash.bloom_size", Near(&[1 << 30]), HASH),
        ("gnu_hash.bloom_size", Overflow(|built| built.get("gnu_hash.nbuckets")), HASH),
        ("gnu_hash.bucket[0]", Overflow(|built| built.get("gnu_hash.symoffset") + 64), HASH),
        ("gnu_hash.bucket[1]", Are(HUGE), HASH),
    ];
    check(&gnu(), &flaws);
    let last = gnu().map(|spec| Spec { order: Part::with_last(&[Part::GnuHash]), ..spec });
    check(&last, &[("PT_LOAD.p_filesz", Near(&[0]), Unharmed), ("PT_LOAD.p_filesz", Near(&[-1]), HASH)]);
    // No hash in the last chain ends it.
    spoil(&last, HASH, |built| {
        let mut chain = (0..).map(|index| format!("gnu_hash.chain[{index}]"));
        while let Some(name) = chain.next().filter(|name| built.has(name)) {
            built.set(&name, built.get(&name) & !1);
        }
    });
}

#[test]
fn a_gnu_hash_table_without_buckets_has_the_symbols_before_symoffset() {
    for spec in gnu() {
        let sound = spec.build();
        let symbols = |field, value| {
            let mut built = sound.clone();
            let image = built.set(field, value).remove("DT_VERSYM").bytes.clone();
            seen(Image::parse(&image).unwrap().symbols())
        };
        assert_eq!(symbols("gnu_hash.nbuckets", 0).len(), 0);
        let rows = described(&Spec { versions: false, ..spec.clone() }, &sound);
        assert_eq!(symbols("gnu_hash.symoffset", sound.symbols.len() as u64 + 1), rows);
        // The symbols then end at the end of the image; the bytes after the table may look like some.
        for value in HUGE {
            assert_eq!(symbols("gnu_hash.symoffset", *value)[..rows.len()], rows);
        }
    }
}

#[test]
fn malformed_versions_are_refused() {
    const VERSIONS: Expected = Refused(ParseError::Versions);
    // 0xffff_ffe4 is 28 bytes back, where 32-bit sums wrap.
    let next = Are(&[1, 2, 4, 19, 0xffff_ffe4, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff]);
    let flaws = [
        ("DT_VERSYM", Outside, VERSIONS),
        ("DT_VERDEF", Outside, VERSIONS),
        ("verdef[0].vd_next", next, VERSIONS),
        ("verdef[0].vd_aux", Are(HUGE), VERSIONS),
        ("verdef[1].vd_aux", Are(HUGE), VERSIONS),
    ];
    check(&[&sysv()[..], &gnu(), &all()].concat(), &flaws);
    // DT_VERSYM is the end of the image, and too short for one more symbol.
    let order = Part::with_last(&[Part::Hash, Part::Versym]);
    spoil(&[Spec { order, ..arm() }], VERSIONS, |built| {
        built.set("hash.nchain", built.get("hash.nchain") + 1).set("hash.nbucket", 2);
    });
}

#[test]
fn an_image_has_at_most_16_version_definitions() {
    let versions: Vec<_> = (1..=16).map(|number| format!("LINUX_{number}")).collect();
    for (count, expected) in [(15, Unharmed), (16, Refused(ParseError::Versions))] {
        let symbols = versions[..count].iter().map(|version| Sym::func(version, version)).collect();
        spoil(&[Spec { symbols, ..Spec::default() }], expected, |built| _ = built.remove("DT_VERDEFNUM"));
    }
    check(&[x86_64()], &[("DT_VERDEFNUM", Are(&[3, 17, 0x7fff_ffff, u64::MAX]), Unharmed)]);
}

#[test]
fn without_a_version_table_the_name_alone_decides() {
    for spec in [arm(), i386(), x86_64(), aarch64()] {
        for tags in [&["DT_VERSYM"][..], &["DT_VERDEF"], &["DT_VERDEF", "DT_VERDEFNUM"]] {
            spoil(std::slice::from_ref(&spec), Unversioned, |built| {
                for tag in tags {
                    built.remove(tag);
                }
                let image = Image::parse(&built.bytes).unwrap();
                let name = image.symbols().next().unwrap().name().to_str().unwrap();
                assert!(image.symbol(name, Some("LINUX_99")).is_some(), "{tags:?}");
            });
        }
    }
}

#[test]
fn a_missing_definition_leaves_the_symbols_without_versions() {
    let images = [&sysv()[..], &gnu()].concat();
    let flaws = [
        ("verdef[0].vd_next", Are(&[0]), Unversioned),
        ("DT_VERDEFNUM", Are(&[1]), Unversioned),
        ("verdef[1].vd_ndx", Are(&[99]), Unversioned),
        ("verdef[1].vd_flags", Are(&[1]), Unversioned),
        ("verdef[1].vda_name", Are(&[0x1000, u64::MAX]), Unversioned),
    ];
    check(&images, &flaws);
    // Such a symbol has no version to ask for.
    for spec in images {
        let mut built = spec.build();
        let image = Image::parse(&built.set("verdef[1].vd_ndx", 99).bytes).unwrap();
        let name = image.symbols().next().unwrap().name().to_str().unwrap();
        assert_eq!([V, "LINUX_2.6.39"].map(|version| image.symbol(name, Some(version))), [None; 2]);
    }
}

#[test]
fn an_undefined_version_and_the_name_of_the_image_are_no_versions() {
    for index in [0x7fff, 1] {
        let mut built = x86_64().build();
        let name = built.symbols[0].name;
        let image = Image::parse(&built.set("versym[1]", index).bytes).unwrap();
        assert_eq!(image.symbol(name, None).unwrap().version(), None);
        assert_eq!([V, SONAME].map(|version| image.symbol(name, Some(version))), [None; 2]);
    }
}
