//! The parser finds the symbols of the description in an image of every kind.

use test_images::kinds::{arm, assert_described, described, i386, kinds, seen, x86_64};
use test_images::{Built, Part, SONAME, Spec, Sym, promises};
use vdso_time::elf::{Image, ParseError};

const V: &str = "LINUX_2.6";

/// Fails unless the parser finds the symbols of the description in these bytes.
#[track_caller]
fn assert_symbols(bytes: &[u8], spec: &Spec<'_>, built: &Built<'_>, what: &str) {
    let symbols = Image::parse(bytes).map(|image| seen(image.symbols()));
    assert_eq!(symbols, Ok(described(spec, built)), "{what}");
}

#[test]
fn every_kind_has_its_symbols_and_properties_at_any_address_before_any_bytes() {
    for (kind, spec) in kinds() {
        let built = spec.build();
        assert!(assert_described(kind, &spec) >= 3, "{kind}");
        for (shift, filler) in (0..8).zip([0, 0x12, 0xff].into_iter().cycle()) {
            let bytes = [&vec![filler; shift][..], &built.bytes, &vec![filler; 5000]].concat();
            assert_symbols(&bytes[shift..], &spec, &built, kind);
            assert_eq!(
                Image::extent(&bytes[shift..][..4096]),
                Ok(built.bytes.len()),
                "{kind}"
            );
        }
    }
}

/// A kernel maps only images of its own byte order.
#[test]
fn an_image_of_the_other_byte_order_is_refused() {
    for (kind, spec) in kinds() {
        let big_endian = !spec.big_endian;
        let built = Spec { big_endian, ..spec }.build();
        let refused = Err(ParseError::ByteOrder);
        assert_eq!(Image::extent(&built.bytes), refused, "{kind}");
        assert_eq!(Image::parse(&built.bytes).map(|_| 0), refused, "{kind}");
        promises::keep(&built.bytes);
    }
}

/// Looks for almost equal names. `promises::keep` finds each symbol by its own name and version.
#[test]
fn a_look_up_compares_the_whole_name_and_version() {
    for (kind, spec) in kinds() {
        let built = spec.build();
        let image = Image::parse(&built.bytes).unwrap();
        for symbol in image.symbols().filter(|symbol| !symbol.name().is_empty()) {
            let name = symbol.name().to_str().unwrap();
            let short = &name[..name.len() - 1];
            let long = format!("{name}_");
            let nul = format!("{name}\0");
            for other in [&name[1..], short, &long, &nul] {
                assert_ne!(image.symbol(other, None), Some(symbol), "{kind}: {other:?}");
            }
            let Some(version) = symbol.version().map(|version| version.to_str().unwrap()) else {
                continue;
            };
            for other in [
                "",
                "LINUX",
                "LINUX_2.6.390",
                "LINUX_2.60",
                SONAME,
                &format!("{version}\0"),
            ] {
                assert_eq!(
                    image.symbol(name, Some(other)),
                    None,
                    "{kind}: {name}@{other:?}"
                );
            }
        }
        assert_eq!(
            [image.symbol("", None), image.symbol("\0", None)],
            [None, None],
            "{kind}"
        );
    }
}

#[test]
fn a_name_in_two_versions_is_found_by_its_version_and_one_without_a_version_by_none() {
    let plain = Sym {
        version: None,
        ..Sym::func("plain", V)
    };
    let built = Spec {
        symbols: vec![
            Sym::func("clock", "LINUX_2.5"),
            Sym::func("clock", V),
            plain,
        ],
        gnu_hash: false,
        ..i386()
    }
    .build();
    let image = Image::parse(&built.bytes).unwrap();
    let of = |name, version| image.symbol(name, version).map(|symbol| symbol.value());
    let value = |index: usize| Some(built.symbols[index].st_value());
    let old = value(0);
    let new = value(1);
    let plain = value(2);
    assert_eq!(
        ["LINUX_2.5", V].map(|version| of("clock", Some(version))),
        [old, new]
    );
    assert_eq!(
        [of("clock", None), of("plain", None), of("plain", Some(V))],
        [old, plain, None]
    );
}

/// Linkers put the name of a definition between it and the next one.
#[test]
fn version_definitions_may_be_contiguous() {
    let spec = x86_64();
    let mut built = spec.build();
    for (field, value) in [
        ("verdef[0].vd_aux", 40),
        ("verdef[0].vd_next", 20),
        ("verdef[1].vd_aux", 28),
    ] {
        built.set(field, value);
    }
    let verdef = built.at(Part::Verdef);
    built.bytes[verdef + 20..verdef + 48].rotate_left(8);
    assert_symbols(&built.bytes, &spec, &built, "contiguous definitions");
}

#[test]
fn without_hash_tables_the_symbols_end_at_the_string_table() {
    let symbols = vec![Sym::func("clock", V), Sym::func("time", V)];
    let image = Spec {
        symbols,
        sysv_hash: false,
        gnu_hash: false,
        p_vaddr: 0x4000,
        ..arm()
    };
    for (last, copies) in [
        ([Part::Symtab, Part::Strtab, Part::Text], 0),
        ([Part::Strtab, Part::Symtab, Part::Text], 4),
    ] {
        let mut built = Spec {
            order: Part::with_last(&last),
            ..image.clone()
        }
        .build();
        // The code looks like symbols: they count unless the string table comes before them.
        let symtab = built.at(Part::Symtab);
        let text = built.at(Part::Text);
        let symbol = built.bytes[symtab + 16..][..16].to_vec();
        let skew = (text - symtab).next_multiple_of(16) - (text - symtab);
        for place in built.bytes[text + skew..].chunks_exact_mut(16) {
            place.copy_from_slice(&symbol);
        }
        let symbols = Image::parse(&built.bytes).unwrap().symbols();
        assert_eq!(
            symbols.filter(|symbol| !symbol.name().is_empty()).count(),
            2 + copies,
            "{last:?}"
        );
    }
}

/// Expects that 32-bit addresses do not wrap, because no process maps a 32-bit image there. They
/// are computed in 64 bits, so wrapped ones lie outside.
#[test]
fn only_a_64_bit_image_may_cross_the_end_of_the_address_space() {
    let size = arm().build().bytes.len() as u64;
    for (p_vaddr, wide) in [
        (u64::MAX, true),
        (u64::MAX - 0xff, true),
        (u64::MAX - 0x23f, true),
        ((1 << 32) - size, false),
    ] {
        let spec = Spec {
            p_vaddr,
            ..if wide { x86_64() } else { arm() }
        };
        let built = spec.build();
        assert_symbols(&built.bytes, &spec, &built, &format!("{p_vaddr:#x}"));
    }
    for before in [1, 0x40, 0x80] {
        let built = Spec {
            p_vaddr: (1 << 32) - before,
            ..arm()
        }
        .build();
        assert_eq!(
            Image::parse(&built.bytes).map(|_| ()),
            Err(ParseError::StringTable),
            "{before:#x}"
        );
    }
}
