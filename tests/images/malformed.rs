//! Malformed images: each flaw on which some parser crashed, hung or read outside, with the error
//! or the symbols that must result.

use test_images::kinds::{aarch64, arm, described, i386, s390, seen, x86_64};
use test_images::{Built, PT_DYNAMIC, PT_LOAD, Part, SONAME, Spec, Sym};
use vdso_time::elf::Image;
use vdso_time::elf::ParseError::{
    self, ByteOrder, Class, GnuHash, LoadSegment, NoDynamicSegment, NotElf, ProgramHeaders,
    StringTable, SymbolTable, SysvHash, TooLarge, Truncated, Versions,
};

use Expected::{Lacks, Refused, Unharmed, Unversioned};
use Values::{Are, Near, Outside, Overflow};

const V: &str = "LINUX_2.6";

/// Numbers at which sums and products overflow.
const HUGE: Values = Are(&[
    0x4000_0000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_fff0,
    0xffff_ffff,
    u64::MAX,
]);
/// Sizes and offsets past the end of every image.
const FAR: Values = Are(&[1 << 20, 0xffff_ffff, u64::MAX]);

/// Removes an entry of the dynamic section: it is `DT_DEBUG` then.
const REMOVED: Values = Are(&[21]);

/// The parser's result for a malformed image.
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
    /// The values that overflow to 0 and 1 in a sum with another field and a number.
    Overflow(&'static str, u64),
}

impl Values {
    fn of(&self, built: &Built<'_>, field: &str) -> Vec<u64> {
        let start = built.get("PT_LOAD.p_vaddr");
        let end = start + built.bytes.len() as u64;
        match *self {
            Are(values) => values.to_vec(),
            Near(steps) => steps
                .iter()
                .map(|step| built.get(field).wrapping_add_signed(*step))
                .collect(),
            Outside => vec![start - 1, end, 1, 0x8000_0000, u64::MAX - 7, u64::MAX],
            Overflow(other, more) => [0, 1]
                .map(|sum: u64| sum.wrapping_sub(built.get(other) + more))
                .into(),
        }
    }
}

/// Makes a flaw in images, and fails unless the parser's result is as expected.
#[track_caller]
fn corrupt(images: &[Spec<'_>], expected: Expected, what: &str, corrupt: impl Fn(&mut Built<'_>)) {
    for spec in images {
        let sound = spec.build();
        let mut built = sound.clone();
        corrupt(&mut built);
        let expected = match expected {
            Refused(reason) => Err(reason),
            Unharmed => Ok(described(spec, &sound)),
            Unversioned => Ok(described(
                &Spec {
                    versions: false,
                    ..spec.clone()
                },
                &sound,
            )),
            Lacks(index) => {
                let hidden = sound
                    .callable()
                    .position(|symbol| *symbol == sound.symbols[index - 1]);
                let mut rows = described(spec, &sound);
                rows.remove(hidden.unwrap());
                Ok(rows)
            }
        };
        let symbols = Image::parse(&built.bytes).map(|image| seen(image.symbols()));
        assert_eq!(symbols, expected, "{what}, machine {}", spec.machine);
    }
}

/// Describes images of both classes, with one hash table or both, whose addresses are not offsets.
fn all() -> Vec<Spec<'static>> {
    moved_to_0x2000([
        arm(),
        Spec {
            gnu_hash: true,
            ..arm()
        },
        aarch64(),
        x86_64(),
    ])
}

/// Images in which the parser uses `DT_HASH`: both classes, and 64-bit words.
fn sysv() -> Vec<Spec<'static>> {
    moved_to_0x2000([arm(), x86_64(), s390()])
}

/// Images in which the parser uses `DT_GNU_HASH`: both classes.
fn gnu() -> Vec<Spec<'static>> {
    moved_to_0x2000([arm(), aarch64()].map(|spec| Spec {
        sysv_hash: false,
        gnu_hash: true,
        ..spec
    }))
}

/// Describes the same images with the hash table at the end.
fn sysv_last() -> Vec<Spec<'static>> {
    with_last(Part::Hash, sysv())
}

fn gnu_last() -> Vec<Spec<'static>> {
    with_last(Part::GnuHash, gnu())
}

/// Describes images with `DT_VERDEF` and `DT_VERSYM`.
fn versioned() -> Vec<Spec<'static>> {
    [sysv(), gnu(), all()].concat()
}

/// Describes images with a loaded segment that does not begin at the image's first byte.
fn moved() -> Vec<Spec<'static>> {
    let moved = [arm(), x86_64()].map(|spec| Spec {
        p_offset: 0x240,
        p_vaddr: 0x240,
        ..spec
    });
    [&all()[..], &moved].concat()
}

fn one() -> Vec<Spec<'static>> {
    moved_to_0x2000([x86_64()])
}

fn moved_to_0x2000<const N: usize>(images: [Spec<'static>; N]) -> Vec<Spec<'static>> {
    images
        .map(|spec| Spec {
            p_vaddr: 0x2000,
            ..spec
        })
        .into()
}

fn with_last(last: Part, images: Vec<Spec<'static>>) -> Vec<Spec<'static>> {
    images
        .into_iter()
        .map(|spec| Spec {
            order: Part::with_last(&[last]),
            ..spec
        })
        .collect()
}

/// Images, a field, its values, and the parser's result for each.
type Flaw = (fn() -> Vec<Spec<'static>>, &'static str, Values, Expected);

const FLAWS: &[Flaw] = &[
    (all, "EI_CLASS", Are(&[0, 3, 0xff]), Refused(Class)),
    (all, "EI_DATA", Are(&[0, 3, 0xff]), Refused(ByteOrder)),
    (
        all,
        "e_phoff",
        Are(&[4096, 1 << 20, 0x7fff_ffff, u64::MAX - 31, u64::MAX]),
        Refused(ProgramHeaders),
    ),
    (
        all,
        "e_phnum",
        Are(&[128, 0x8000, 0xffff]),
        Refused(ProgramHeaders),
    ),
    (all, "e_phnum", Are(&[0]), Refused(NoDynamicSegment)),
    (
        all,
        "e_phentsize",
        Are(&[0, 1, 31]),
        Refused(ProgramHeaders),
    ),
    (all, "e_phentsize", Near(&[-1]), Refused(ProgramHeaders)),
    // The headers then lie where the image says, at odd offsets.
    (all, "e_phentsize", Near(&[1]), Refused(NoDynamicSegment)),
    (
        all,
        "PT_DYNAMIC.p_type",
        Are(&[0]),
        Refused(NoDynamicSegment),
    ),
    (moved, "PT_LOAD.p_type", Are(&[0]), Refused(LoadSegment)),
    (
        moved,
        "PT_LOAD.p_filesz",
        Are(&[0, 1, 0x10]),
        Refused(LoadSegment),
    ),
    (
        moved,
        "PT_LOAD.p_filesz",
        Overflow("PT_LOAD.p_offset", 0),
        Refused(LoadSegment),
    ),
    (moved, "PT_LOAD.p_memsz", Near(&[-1]), Refused(LoadSegment)),
    // More memory than bytes in the file is .bss.
    (one, "PT_LOAD.p_memsz", Are(&[u64::MAX]), Unharmed),
    (moved, "PT_LOAD.p_offset", FAR, Refused(LoadSegment)),
    (
        moved,
        "PT_LOAD.p_offset",
        Overflow("PT_LOAD.p_filesz", 0),
        Refused(LoadSegment),
    ),
    (moved, "PT_DYNAMIC.p_offset", FAR, Refused(LoadSegment)),
    (
        moved,
        "PT_DYNAMIC.p_offset",
        Overflow("PT_DYNAMIC.p_filesz", 0),
        Refused(LoadSegment),
    ),
    (moved, "PT_DYNAMIC.p_filesz", FAR, Refused(LoadSegment)),
    (
        moved,
        "PT_DYNAMIC.p_filesz",
        Overflow("PT_DYNAMIC.p_offset", 0),
        Refused(LoadSegment),
    ),
    (one, "DT_STRTAB.d_tag", REMOVED, Refused(StringTable)),
    (one, "DT_SYMTAB.d_tag", REMOVED, Refused(SymbolTable)),
    (one, "DT_HASH.d_tag", REMOVED, Unharmed),
    (one, "DT_GNU_HASH.d_tag", REMOVED, Unharmed),
    (one, "DT_STRSZ.d_tag", REMOVED, Unharmed),
    (one, "DT_SYMENT.d_tag", REMOVED, Unharmed),
    (one, "DT_VERDEFNUM.d_tag", REMOVED, Unharmed),
    // The section ends at the first DT_NULL.
    (sysv, "DT_HASH.d_tag", Are(&[0]), Refused(StringTable)),
    (all, "DT_STRTAB", Outside, Refused(StringTable)),
    (all, "DT_STRSZ", FAR, Refused(StringTable)),
    (
        one,
        "DT_STRSZ",
        Overflow("DT_STRTAB", 16),
        Refused(StringTable),
    ),
    (all, "DT_SYMTAB", Outside, Refused(SymbolTable)),
    (
        all,
        "DT_SYMENT",
        Are(&[1, 15, 17, 25, u64::MAX]),
        Refused(SymbolTable),
    ),
    (
        one,
        "sym[3].st_name",
        Are(&[4096, 0x7fff_ffff, 0xffff_ffff]),
        Lacks(3),
    ),
    (one, "sym[3].st_value", Outside, Lacks(3)),
    (sysv, "DT_HASH", Outside, Refused(SysvHash)),
    (sysv, "hash.nbucket", Are(&[0]), Unharmed),
    (sysv, "hash.nbucket", HUGE, Refused(SysvHash)),
    (
        sysv,
        "hash.nbucket",
        Overflow("hash.nchain", 2),
        Refused(SysvHash),
    ),
    (sysv, "hash.nchain", HUGE, Refused(SysvHash)),
    (
        sysv,
        "hash.nchain",
        Overflow("hash.nbucket", 2),
        Refused(SysvHash),
    ),
    // The chains are not followed.
    (sysv, "hash.bucket[1]", HUGE, Unharmed),
    (sysv, "hash.chain[1]", Are(&[1]), Unharmed),
    (sysv_last, "PT_LOAD.p_filesz", Near(&[0]), Unharmed),
    (
        sysv_last,
        "PT_LOAD.p_filesz",
        Near(&[-1]),
        Refused(SysvHash),
    ),
    (gnu, "DT_GNU_HASH", Outside, Refused(GnuHash)),
    (gnu, "gnu_hash.nbuckets", HUGE, Refused(GnuHash)),
    (
        gnu,
        "gnu_hash.bloom_size",
        Are(&[0x1000, 0x1fff_ffff]),
        Refused(GnuHash),
    ),
    (gnu, "gnu_hash.bloom_size", HUGE, Refused(GnuHash)),
    // The size in bytes is the old one in 32 bits.
    (
        gnu,
        "gnu_hash.bloom_size",
        Near(&[1 << 29, 1 << 30]),
        Refused(GnuHash),
    ),
    (
        gnu,
        "gnu_hash.bloom_size",
        Overflow("gnu_hash.nbuckets", 0),
        Refused(GnuHash),
    ),
    (
        gnu,
        "gnu_hash.bucket[0]",
        Overflow("gnu_hash.symoffset", 64),
        Refused(GnuHash),
    ),
    (gnu, "gnu_hash.bucket[1]", HUGE, Refused(GnuHash)),
    (gnu_last, "PT_LOAD.p_filesz", Near(&[0]), Unharmed),
    (gnu_last, "PT_LOAD.p_filesz", Near(&[-1]), Refused(GnuHash)),
    (versioned, "DT_VERSYM", Outside, Refused(Versions)),
    (versioned, "DT_VERDEF", Outside, Refused(Versions)),
    // 0xffff_ffe4 is 28 bytes back, where 32-bit sums wrap.
    (
        versioned,
        "verdef[0].vd_next",
        Are(&[1, 2, 4, 19, 0xffff_ffe4, 0x7fff_ffff]),
        Refused(Versions),
    ),
    (
        versioned,
        "verdef[0].vd_next",
        Are(&[0x8000_0000, 0xffff_ffff]),
        Refused(Versions),
    ),
    (versioned, "verdef[0].vd_aux", HUGE, Refused(Versions)),
    (versioned, "verdef[1].vd_aux", HUGE, Refused(Versions)),
    (
        one,
        "DT_VERDEFNUM",
        Are(&[3, 17, 0x7fff_ffff, u64::MAX]),
        Unharmed,
    ),
    // The hidden bit of a version is ignored.
    (versioned, "versym[1]", Near(&[0x8000]), Unharmed),
    (versioned, "verdef[1].vd_ndx", Near(&[0x8000]), Unharmed),
    // A symbol of an undefined version has none.
    (sysv, "verdef[0].vd_next", Are(&[0]), Unversioned),
    (gnu, "verdef[0].vd_next", Are(&[0]), Unversioned),
    (sysv, "DT_VERDEFNUM", Are(&[1]), Unversioned),
    (sysv, "verdef[1].vd_ndx", Are(&[99]), Unversioned),
    (sysv, "verdef[1].vd_flags", Are(&[1]), Unversioned),
    (
        sysv,
        "verdef[1].vda_name",
        Are(&[0x1000, u64::MAX]),
        Unversioned,
    ),
];

#[test]
#[expect(clippy::too_many_lines, reason = "each flaw is one call")]
fn each_flaw_is_refused_or_costs_only_what_it_corrupts() {
    for (images, field, values, expected) in FLAWS {
        for spec in images() {
            for value in values.of(&spec.build(), field) {
                corrupt(
                    std::slice::from_ref(&spec),
                    *expected,
                    &format!("{field} is {value:#x}"),
                    |built| {
                        built.set(field, value);
                    },
                );
            }
        }
    }
    for at in 0..4 {
        corrupt(&all(), Refused(NotElf), "no magic number", |built| {
            built.bytes[at] ^= 1;
        });
    }
    corrupt(
        &all(),
        Refused(StringTable),
        "no NUL in the string table",
        |built| {
            let start = built.at(Part::Strtab);
            let size = built.get("DT_STRSZ") as usize;
            built.bytes[start..][..size].fill(b'a');
        },
    );
    corrupt(
        &versioned(),
        Refused(Versions),
        "a definition after the one of index 0",
        |built| {
            built
                .set("verdef[0].vd_flags", 0)
                .set("verdef[0].vd_ndx", 0)
                .set("verdef[1].vd_aux", 0x7fff_ffff);
        },
    );
    // No hash in the last chain ends it.
    corrupt(&gnu_last(), Refused(GnuHash), "an endless chain", |built| {
        for field in built
            .fields
            .clone()
            .iter()
            .filter(|field| field.name.starts_with("gnu_hash.chain"))
        {
            built.set(&field.name, built.get(&field.name) & !1);
        }
    });
    // DT_VERSYM is the end of the image, and too short for one more symbol.
    let order = Part::with_last(&[Part::Hash, Part::Versym]);
    corrupt(
        &[Spec { order, ..arm() }],
        Refused(Versions),
        "a short DT_VERSYM",
        |built| {
            built
                .set("hash.nchain", built.get("hash.nchain") + 1)
                .set("hash.nbucket", 2);
        },
    );
}

#[test]
fn program_headers_end_in_the_first_page_and_may_be_larger_than_their_fields() {
    for (more, expected) in [(0, Unharmed), (1, Refused(ProgramHeaders))] {
        corrupt(&all(), expected, "at the end of the first page", |built| {
            let size = built.get("e_phnum") * built.get("e_phentsize");
            let from = built.get("e_phoff") as usize;
            let to = 4096 - size + more;
            built.bytes.resize(8192, 0);
            built
                .bytes
                .copy_within(from..from + size as usize, to as usize);
            built.set("e_phoff", to);
        });
    }
    let segments = vec![PT_LOAD, PT_DYNAMIC, PT_DYNAMIC, 0];
    corrupt(
        &[Spec {
            segments,
            ..aarch64()
        }],
        Unharmed,
        "large headers",
        |built| {
            built.set("e_phentsize", 112).set("e_phnum", 2);
        },
    );
}

#[test]
fn an_image_is_at_most_1_mib_and_as_long_as_its_segment() {
    for more in [1, 4096] {
        corrupt(&all(), Refused(Truncated), "cut short", |built| {
            built.resize(built.get("PT_LOAD.p_filesz") + more);
        });
    }
    for size in [(1 << 20) + 1, 0x7fff_ffff, 0xffff_ffff] {
        corrupt(&all(), Refused(TooLarge), "too large", |built| {
            _ = built.resize(size);
        });
    }
    corrupt(
        &[Spec {
            extent: 1 << 20,
            ..x86_64()
        }],
        Unharmed,
        "the largest",
        |built| {
            assert_eq!(Image::extent(&built.bytes), Ok(1 << 20));
        },
    );
}

#[test]
fn a_symbol_without_a_terminated_name_of_at_most_1023_bytes_is_hidden_alone() {
    // The shortest string is the last of the table.
    let symbols = ["first", "second", "last"]
        .map(|name| Sym::func(name, V))
        .to_vec();
    let plain = Spec {
        versions: false,
        gnu_hash: false,
        ..Spec::default()
    };
    let spec = Spec {
        symbols,
        order: Part::with_last(&[Part::Strtab]),
        ..plain.clone()
    };
    corrupt(&[spec], Lacks(3), "no NUL", |built| {
        _ = built.set("DT_STRSZ", built.get("DT_STRSZ") - 1);
    });
    for (size, expected) in [(1023, Unharmed), (1024, Lacks(1))] {
        let name = "n".repeat(size);
        let symbols = vec![
            Sym::func(&name, V),
            Sym {
                size: u64::MAX,
                ..Sym::func("short", V)
            },
        ];
        corrupt(
            &[Spec {
                symbols,
                ..plain.clone()
            }],
            expected,
            "a long name",
            |built| {
                let image = Image::parse(&built.bytes).unwrap();
                assert_eq!(image.symbol(&name, None).is_some(), size == 1023);
            },
        );
    }
}

#[test]
fn a_gnu_hash_table_without_buckets_has_the_symbols_before_symoffset() {
    let count = |built: &Built<'_>| Image::parse(&built.bytes).unwrap().symbols().count();
    for spec in gnu() {
        let sound = spec.build();
        assert_eq!(count(sound.clone().set("gnu_hash.nbuckets", 0)), 0);
        let mut empty = sound.clone();
        for index in 0..3 {
            empty.set(&format!("gnu_hash.bucket[{index}]"), 0);
        }
        assert_eq!(count(&empty), 0);
        let all = described(&spec, &sound).len();
        assert_eq!(
            count(empty.set("gnu_hash.symoffset", sound.symbols.len() as u64 + 1)),
            all
        );
        // The symbols then end at the end of the image; the bytes after the table may look like
        // some.
        let mut endless = sound.clone();
        assert!(
            count(
                endless
                    .remove("DT_VERSYM")
                    .set("gnu_hash.symoffset", 0xffff_ffff)
            ) >= all
        );
    }
}

#[test]
fn an_image_has_at_most_16_version_definitions() {
    let versions: Vec<_> = (1..=16).map(|number| format!("LINUX_{number}")).collect();
    for (count, expected) in [(15, Unharmed), (16, Refused(Versions))] {
        let symbols = versions[..count]
            .iter()
            .map(|version| Sym::func(version, version))
            .collect();
        corrupt(
            &[Spec {
                symbols,
                ..Spec::default()
            }],
            expected,
            "versions",
            |built| {
                built.remove("DT_VERDEFNUM");
            },
        );
    }
}

/// Removes one or both version tables: then the name alone decides. With both, a symbol of an
/// undefined version, or of the version that names the image, is found only without a version.
#[test]
fn a_version_is_compared_only_with_a_definition() {
    for tags in [
        &["DT_VERSYM"][..],
        &["DT_VERDEF"],
        &["DT_VERDEF", "DT_VERDEFNUM"],
    ] {
        corrupt(
            &[arm(), i386(), x86_64(), aarch64()],
            Unversioned,
            &format!("{tags:?}"),
            |built| {
                for tag in tags {
                    built.remove(tag);
                }
                let image = Image::parse(&built.bytes).unwrap();
                let name = image.symbols().next().unwrap().name().to_str().unwrap();
                assert!(image.symbol(name, Some("LINUX_99")).is_some(), "{tags:?}");
            },
        );
    }
    for (field, value) in [
        ("versym[1]", 0x7fff),
        ("versym[1]", 1),
        ("verdef[1].vd_ndx", 99),
    ] {
        let mut built = x86_64().build();
        let name = built.symbols[0].name;
        let image = Image::parse(&built.set(field, value).bytes).unwrap();
        assert_eq!(image.symbol(name, None).unwrap().version(), None);
        assert_eq!(
            [V, SONAME].map(|version| image.symbol(name, Some(version))),
            [None; 2],
            "{field}"
        );
    }
}
