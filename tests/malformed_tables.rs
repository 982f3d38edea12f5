//! Malformed hash tables and version tables are refused with the reason, or do no harm: each flaw that some walker crashed,
//! hung or read wild memory on, by name.

use test_support::image;
use test_support::image::kinds as image_kinds;

use vdso_time::elf::{Image, ParseError};

use image::{Built, Part, Spec, Sym};
use image_kinds::{aarch64, arm, described, seen, x86_64};

/// What the walker makes of an image that is spoilt in this way: its symbols as they are described, or an error.
fn spoilt(spec: &Spec<'_>, spoil: impl Fn(&mut Built<'_>)) -> Result<bool, ParseError> {
    let mut built = spec.build();
    let rows = described(spec, &built);
    spoil(&mut built);
    Image::parse(&built.bytes).map(|image| seen(image.symbols()) == rows)
}

/// Images with `DT_HASH` that goes first: of both classes, and with 64-bit words.
fn sysv() -> [Spec<'static>; 3] {
    let s390 = Spec { big_endian: true, machine: 22, wide_hash: true, sysv_hash: true, ..aarch64() };
    [arm(), x86_64(), Spec { gnu_hash: false, ..s390 }]
}

/// Images with `DT_GNU_HASH` only, of both classes.
fn gnu() -> [Spec<'static>; 2] {
    [Spec { sysv_hash: false, gnu_hash: true, ..arm() }, aarch64()]
}

/// The numbers at which sums and products go over.
const HUGE: [u64; 6] = [0x4000_0000, 0x7fff_ffff, 0x8000_0000, 0xffff_fff0, 0xffff_ffff, u64::MAX];

#[test]
fn no_buckets_divide_nothing() {
    for spec in sysv() {
        assert_eq!(spoilt(&spec, |built| _ = built.set("hash.nbucket", 0)), Ok(true));
    }
    for spec in gnu() {
        let mut built = spec.build();
        let image = Image::parse(&built.set("gnu_hash.nbuckets", 0).bytes).unwrap().symbols().count();
        assert_eq!(image, 0, "no symbol is in the table");
    }
}

#[test]
fn a_hash_table_larger_than_the_image_is_refused() {
    for spec in sysv() {
        for value in HUGE {
            for field in ["hash.nbucket", "hash.nchain"] {
                let refusal = spoilt(&spec, |built| _ = built.set(field, value));
                assert_eq!(refusal, Err(ParseError::SysvHash), "{field} {value:#x}");
            }
        }
    }
    for spec in gnu() {
        for value in HUGE {
            for field in ["gnu_hash.nbuckets", "gnu_hash.bloom_size"] {
                let refusal = spoilt(&spec, |built| _ = built.set(field, value));
                assert_eq!(refusal, Err(ParseError::GnuHash), "{field} {value:#x}");
            }
        }
    }
}

#[test]
fn a_hash_table_cut_by_the_end_of_the_image_is_refused() {
    let last = |spec: Spec<'static>, part| {
        let mut order = Part::ALL.to_vec();
        order.retain(|other| *other != part);
        order.push(part);
        Spec { order, ..spec }
    };
    let less = |built: &mut Built<'_>| {
        let size = built.get("PT_LOAD.p_filesz") - 1;
        built.set("PT_LOAD.p_filesz", size);
    };
    for spec in sysv() {
        assert_eq!(spoilt(&last(spec.clone(), Part::Hash), |_| {}), Ok(true));
        assert_eq!(spoilt(&last(spec, Part::Hash), less), Err(ParseError::SysvHash));
    }
    for spec in gnu() {
        assert_eq!(spoilt(&last(spec.clone(), Part::GnuHash), |_| {}), Ok(true));
        assert_eq!(spoilt(&last(spec, Part::GnuHash), less), Err(ParseError::GnuHash));
    }
}

#[test]
fn a_chain_that_points_at_itself_is_not_followed() {
    for spec in sysv() {
        let count = spec.symbols.len() as u64 + 1;
        let spoil = |built: &mut Built<'_>| {
            for index in 0..count {
                built.set(&format!("hash.chain[{index}]"), index.max(1));
            }
            for index in 0..3 {
                built.set(&format!("hash.bucket[{index}]"), u64::MAX);
            }
        };
        assert_eq!(spoilt(&spec, spoil), Ok(true));
    }
}

#[test]
fn a_chain_that_never_ends_is_refused() {
    for spec in gnu() {
        // Nothing behind the table has bit 0 set where a hash would.
        let order = [
            Part::Symtab,
            Part::Strtab,
            Part::Versym,
            Part::Verdef,
            Part::Dynamic,
            Part::Text,
            Part::GnuHash,
        ];
        let refusal = spoilt(&Spec { order: order.to_vec(), ..spec }, |built| {
            for index in 0.. {
                let name = format!("gnu_hash.chain[{index}]");
                if built.fields.iter().all(|field| field.name != name) {
                    break;
                }
                built.set(&name, built.get(&name) & !1);
            }
        });
        assert_eq!(refusal, Err(ParseError::GnuHash));
    }
}

#[test]
fn a_bucket_beyond_the_chains_is_refused() {
    for spec in gnu() {
        for value in HUGE {
            let refusal = spoilt(&spec, |built| _ = built.set("gnu_hash.bucket[1]", value));
            assert_eq!(refusal, Err(ParseError::GnuHash), "{value:#x}");
        }
    }
}

#[test]
fn a_symbol_offset_above_every_index_counts_the_symbols_in_front_of_it() {
    for spec in gnu() {
        let all = spec.symbols.len() as u64 + 1;
        assert_eq!(spoilt(&spec, |built| _ = built.set("gnu_hash.symoffset", all)), Ok(true));
        // One behind the end of the image is as good as the end: what lies there is looked at as any symbol is.
        for value in HUGE {
            let mut built = spec.build();
            let rows = described(&spec, &built);
            built.set("gnu_hash.symoffset", value).remove("DT_VERSYM");
            let image = Image::parse(&built.bytes).unwrap();
            let values: Vec<_> = image.symbols().map(|symbol| symbol.value()).collect();
            assert!(
                values.len() >= rows.len() && values.iter().all(|value| *value < built.bytes.len() as u64)
            );
        }
    }
}

#[test]
fn too_many_symbols_for_the_table_of_versions_are_refused() {
    let order =
        [Part::Symtab, Part::Strtab, Part::Verdef, Part::Dynamic, Part::Text, Part::Hash, Part::Versym];
    let spec = Spec { order: order.to_vec(), ..arm() };
    assert_eq!(spoilt(&spec, |_| {}), Ok(true));
    let more = |built: &mut Built<'_>| {
        built.set("hash.nchain", built.get("hash.nchain") + 1).set("hash.nbucket", 2);
    };
    assert_eq!(spoilt(&spec, more), Err(ParseError::Versions));
}

#[test]
fn definitions_that_lead_backwards_nowhere_or_into_themselves_are_refused() {
    for spec in sysv().into_iter().chain(gnu()) {
        // 0xffff_ffe4 is 28 back, where 32-bit sums wrap.
        for next in [1, 2, 4, 19, 0xffff_ffe4, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff] {
            let refusal = spoilt(&spec, |built| _ = built.set("verdef[0].vd_next", next));
            assert_eq!(refusal, Err(ParseError::Versions), "{next:#x}");
        }
    }
}

#[test]
fn a_definition_outside_the_image_is_refused() {
    for spec in sysv().into_iter().chain(gnu()) {
        for field in ["verdef[0].vd_aux", "verdef[1].vd_aux"] {
            for value in HUGE {
                let refusal = spoilt(&spec, |built| _ = built.set(field, value));
                assert_eq!(refusal, Err(ParseError::Versions), "{field} {value:#x}");
            }
        }
    }
}

#[test]
fn definitions_that_end_early_or_have_no_name_leave_the_symbols_without_versions() {
    for spec in sysv().into_iter().chain(gnu()) {
        let built = spec.build();
        let rows = described(&Spec { versions: false, ..spec.clone() }, &built);
        let strings = built.get("DT_STRSZ");
        for (field, value) in [
            ("verdef[0].vd_next", 0),
            ("DT_VERDEFNUM", 1),
            ("verdef[1].vd_ndx", 99),
            ("verdef[1].vd_flags", 1),
            ("verdef[1].vda_name", strings),
            ("verdef[1].vda_name", u64::MAX),
        ] {
            let mut built = spec.build();
            let image = Image::parse(&built.set(field, value).bytes).unwrap();
            assert_eq!(seen(image.symbols()), rows, "{field}");
            let name = image.symbols().next().unwrap().name().to_str().unwrap();
            assert_eq!(image.symbol(name, Some("LINUX_2.6")), None, "{field}");
            assert_eq!(image.symbol(name, Some("LINUX_2.6.39")), None, "{field}");
        }
    }
}

#[test]
fn more_definitions_than_any_image_has_are_refused() {
    let versions: Vec<_> = (1..=16).map(|number| format!("LINUX_{number}")).collect();
    let with = |count: usize| {
        let symbols = versions[..count].iter().map(|version| Sym::func(version, version)).collect();
        spoilt(&Spec { symbols, ..Spec::default() }, |built| _ = built.remove("DT_VERDEFNUM"))
    };
    assert_eq!(with(15), Ok(true));
    assert_eq!(with(16), Err(ParseError::Versions));
}

#[test]
fn a_number_of_definitions_that_is_too_large_does_no_harm() {
    for value in [3, 17, 0x7fff_ffff, u64::MAX] {
        assert_eq!(spoilt(&x86_64(), |built| _ = built.set("DT_VERDEFNUM", value)), Ok(true), "{value:#x}");
    }
}

#[test]
fn a_version_that_is_not_defined_is_none() {
    let mut built = x86_64().build();
    let name = built.symbols[0].name;
    built.set("versym[1]", 0x7fff);
    let image = Image::parse(&built.bytes).unwrap();
    assert_eq!(image.symbol(name, None).unwrap().version(), None);
    assert_eq!(image.symbol(name, Some("LINUX_2.6")), None);
}

#[test]
fn the_definition_that_names_the_image_is_no_version() {
    let mut built = x86_64().build();
    let name = built.symbols[0].name;
    built.set("versym[1]", 1);
    let image = Image::parse(&built.bytes).unwrap();
    assert_eq!(image.symbol(name, None).unwrap().version(), None);
    assert_eq!(image.symbol(name, Some(image::SONAME)), None);
}
