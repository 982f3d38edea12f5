//! The walker sees in an image of every kind exactly the symbols that its description has.

use test_support::image;
use test_support::image::kinds as image_kinds;

use vdso_time::elf::{Image, ParseError, SymbolKind};

use image::{Part, Spec, Sym, Value, WEAK};
use image_kinds::{aarch64, arm, assert_sound, described, i386, kinds, seen, x86_64};

const V: &str = "LINUX_2.6";

/// The names, in the table's order.
fn names(bytes: &[u8]) -> Vec<String> {
    let image = Image::parse(bytes).unwrap();
    image.symbols().map(|symbol| symbol.name().to_str().unwrap().to_owned()).collect()
}

/// A name and the string behind it, as the string table has them.
fn with_the_next_string(built: &image::Built<'_>, name: &str) -> String {
    let strings = String::from_utf8_lossy(&built.bytes[built.at.strtab..]);
    let start = strings.find(&format!("\0{name}\0")).unwrap() + 1;
    strings[start..].split('\0').take(2).collect::<Vec<_>>().join("\0")
}

#[test]
fn every_kind_shows_its_symbols() {
    for (kind, spec) in kinds() {
        let built = spec.build();
        let image = Image::parse(&built.bytes).unwrap_or_else(|error| panic!("{kind}: {error}"));
        assert_eq!(seen(image.symbols()), described(&spec, &built), "{kind}");
        assert!(image.symbols().count() >= 3, "{kind}");
        assert_sound(&image, built.at.end - spec.p_offset, &|| kind.into());
    }
}

#[test]
fn every_kind_says_what_it_is() {
    for (kind, spec) in kinds() {
        let built = spec.build();
        let image = Image::parse(&built.bytes).unwrap();
        let tables = image.hash_tables();
        assert_eq!((tables.sysv, tables.gnu), (spec.sysv_hash, spec.gnu_hash), "{kind}");
        assert_eq!((image.machine(), image.class()), (spec.machine, if spec.wide { 2 } else { 1 }), "{kind}");
        assert_eq!(image.load_address(), spec.p_vaddr, "{kind}");
        assert_eq!(Image::extent(&built.bytes), Ok(built.bytes.len()), "{kind}");
    }
}

#[test]
fn a_look_up_by_name_and_version_finds_the_symbol_and_nothing_like_it() {
    for (kind, spec) in kinds() {
        let built = spec.build();
        let image = Image::parse(&built.bytes).unwrap();
        for symbol in image.symbols().filter(|symbol| !symbol.name().is_empty()) {
            let name = symbol.name().to_str().unwrap();
            let found = |name: &str, version: Option<&str>| image.symbol(name, version);
            assert_eq!(found(name, None), Some(symbol), "{kind}: {name}");
            let two = with_the_next_string(&built, name);
            for other in
                [&name[1..], &name[..name.len() - 1], &format!("{name}_"), &format!("{name}\0"), &two]
            {
                assert_ne!(found(other, None), Some(symbol), "{kind}: {other:?}");
            }
            let Some(version) = symbol.version().map(|version| version.to_str().unwrap()) else { continue };
            assert_eq!(found(name, Some(version)), Some(symbol), "{kind}: {name}@{version}");
            for other in ["", "LINUX", "LINUX_2.6.390", "LINUX_2.60", image::SONAME, &format!("{version}\0")]
            {
                assert_eq!(found(name, Some(other)), None, "{kind}: {name}@{other:?}");
            }
        }
        assert_eq!(image.symbol("", None), None, "{kind}");
        assert_eq!(image.symbol("\0", None), None, "{kind}");
    }
}

#[test]
fn without_version_tables_the_name_is_enough() {
    let built = Spec { versions: false, ..x86_64() }.build();
    let image = Image::parse(&built.bytes).unwrap();
    let symbol = image.symbol("__vdso_time", Some("LINUX_99")).unwrap();
    assert_eq!((symbol.version(), symbol.kind()), (None, SymbolKind::Func));
}

#[test]
fn a_symbol_of_no_version_has_none_to_ask_for() {
    let symbols = vec![Sym { version: None, ..Sym::func("plain", V) }, Sym::func("versioned", V)];
    let built = Spec { symbols, ..Spec::default() }.build();
    let image = Image::parse(&built.bytes).unwrap();
    assert!(image.symbol("plain", None).is_some_and(|symbol| symbol.version().is_none()));
    assert_eq!(image.symbol("plain", Some(V)), None);
}

#[test]
fn of_two_versions_of_a_name_the_one_asked_for_is_found() {
    let symbols = vec![Sym::func("clock", "LINUX_2.5"), Sym::func("clock", V)];
    let built = Spec { symbols, ..i386() }.build();
    let image = Image::parse(&built.bytes).unwrap();
    let of = |version| image.symbol("clock", version).map(|symbol| symbol.value());
    let value = |index: usize| Some(built.symbols[index].st_value());
    assert_eq!((of(Some("LINUX_2.5")), of(Some(V)), of(None)), (value(0), value(1), value(0)));
}

#[test]
fn the_hidden_bit_of_a_version_does_not_count() {
    let spec = x86_64();
    let hide = |built: &mut image::Built<'_>, field: &str| _ = built.set(field, built.get(field) | 0x8000);
    let mut of_symbols = spec.build();
    for index in 1..=of_symbols.symbols.len() {
        hide(&mut of_symbols, &format!("versym[{index}]"));
    }
    let mut of_definition = spec.build();
    hide(&mut of_definition, "verdef[1].vd_ndx");
    for built in [of_symbols, of_definition] {
        assert_eq!(seen(Image::parse(&built.bytes).unwrap().symbols()), described(&spec, &built));
    }
}

#[test]
fn the_parts_may_stand_in_any_order() {
    for turns in 0..Part::ALL.len() {
        let mut order = Part::ALL.to_vec();
        order.rotate_left(turns);
        for (kind, spec) in kinds().into_iter().filter(|(_, spec)| spec.sysv_hash || spec.gnu_hash) {
            // Were a table at the address 0, it would be none.
            let order = order.clone();
            let spec =
                Spec { order, p_vaddr: spec.p_vaddr.max(spec.p_offset as u64), extent: 0x1000, ..spec };
            let built = spec.build();
            let image = Image::parse(&built.bytes).unwrap_or_else(|error| panic!("{kind}, {turns}: {error}"));
            assert_eq!(seen(image.symbols()), described(&spec, &built), "{kind}, {turns}");
        }
    }
}

/// Every linker script has `.dynstr` behind `.dynsym`; whatever stands elsewhere does not count.
#[test]
fn without_hash_tables_the_symbols_end_where_the_string_table_begins() {
    let names = ["a", "bc", "def", "ghij", "klmno", "pqrstu"];
    for (next, count) in (1..=6).map(|count| (Part::Strtab, count)) {
        let mut order = Part::ALL.to_vec();
        order.retain(|part| ![next, Part::Symtab].contains(part));
        order.extend([Part::Symtab, next]);
        let symbols: Vec<_> = names[..count].iter().map(|name| Sym::func(name, V)).collect();
        for (turns, spec) in (0..6).flat_map(|turns| [(turns, aarch64()), (turns, arm())]) {
            let (mut order, symbols) = (order.clone(), symbols.clone());
            order[..6].rotate_left(turns);
            let (p_vaddr, extent) = (0x4000_0000, 0x1000 * (turns % 2));
            let spec = Spec { order, symbols, p_vaddr, sysv_hash: false, gnu_hash: false, extent, ..spec };
            let built = spec.build();
            let image = Image::parse(&built.bytes).map(|image| seen(image.symbols()));
            assert_eq!(image, Ok(described(&spec, &built)), "{:?}", spec.order);
        }
    }
}

#[test]
fn an_image_may_lie_at_an_odd_address() {
    for (kind, spec) in kinds() {
        let built = spec.build();
        for shift in 1..8 {
            let mut bytes = vec![0xff; shift];
            bytes.extend(&built.bytes);
            let image = Image::parse(&bytes[shift..]).unwrap();
            assert_eq!(seen(image.symbols()), described(&spec, &built), "{kind}, {shift}");
        }
    }
}

#[test]
fn bytes_behind_the_image_are_not_looked_at() {
    for (kind, spec) in kinds() {
        let built = spec.build();
        for filler in [0, 0x12, 0xff] {
            let mut bytes = built.bytes.clone();
            bytes.resize(bytes.len() + 5000, filler);
            let image = Image::parse(&bytes).unwrap();
            assert_eq!(seen(image.symbols()), described(&spec, &built), "{kind}");
            assert_eq!(Image::extent(&bytes[..4096]), Ok(built.bytes.len()), "{kind}");
        }
    }
}

#[test]
fn a_table_that_is_missing_is_missed_only_where_nothing_replaces_it() {
    let spec = x86_64();
    let without = |tag: &str| {
        let mut built = spec.build();
        let rows = described(&spec, &built);
        Image::parse(&built.remove(tag).bytes).map(|image| seen(image.symbols()) == rows)
    };
    for tag in ["DT_HASH", "DT_GNU_HASH", "DT_STRSZ", "DT_SYMENT", "DT_VERDEFNUM"] {
        assert_eq!(without(tag), Ok(true), "{tag}");
    }
    assert_eq!(without("DT_STRTAB"), Err(ParseError::StringTable));
    assert_eq!(without("DT_SYMTAB"), Err(ParseError::SymbolTable));
}

#[test]
fn one_table_of_versions_is_as_good_as_none() {
    for tag in ["DT_VERSYM", "DT_VERDEF"] {
        let mut built = aarch64().build();
        let rows = described(&Spec { versions: false, ..aarch64() }, &built);
        let image = Image::parse(&built.remove(tag).bytes).unwrap();
        assert_eq!(seen(image.symbols()), rows, "{tag}");
        assert!(image.symbol("__kernel_clock_gettime", Some("LINUX_99")).is_some(), "{tag}");
    }
}

#[test]
fn the_dynamic_section_ends_at_dt_null() {
    let mut built = arm().build();
    built.set("DT_HASH.d_tag", 0);
    assert_eq!(Image::parse(&built.bytes).unwrap_err(), ParseError::StringTable);
}

#[test]
fn an_empty_gnu_hash_table_has_no_symbols() {
    let built = Spec { sysv_hash: false, ..Spec::default() }.build();
    assert_eq!(names(&built.bytes), Vec::<String>::new());
    // Symbols that the table leaves out are in front of symoffset, and still count.
    let mut built = aarch64().build();
    for index in 0..3 {
        built.set(&format!("gnu_hash.bucket[{index}]"), 0);
    }
    assert_eq!(names(&built.bytes), Vec::<String>::new());
    built.set("gnu_hash.symoffset", built.symbols.len() as u64 + 1);
    assert_eq!(names(&built.bytes).len(), 4);
}

#[test]
fn at_its_end_the_iterator_stays() {
    for (kind, spec) in kinds() {
        let built = spec.build();
        let mut symbols = Image::parse(&built.bytes).unwrap().symbols();
        while symbols.next().is_some() {}
        assert_eq!((symbols.next(), symbols.next()), (None, None), "{kind}");
    }
}

#[test]
fn the_first_of_equal_names_wins() {
    let weak = Sym { bind: WEAK, size: 1, ..Sym::func("clock", V) };
    let symbols = vec![weak, Sym { size: 2, value: Value::Alias, ..Sym::func("clock", V) }];
    let built = Spec { symbols, ..arm() }.build();
    let image = Image::parse(&built.bytes).unwrap();
    assert_eq!(image.symbol("clock", Some(V)).unwrap().size(), 1);
    assert_eq!(names(&built.bytes), ["clock", "clock"]);
}
