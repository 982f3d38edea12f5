//! The parser finds the symbols of the description in an image of every kind.

use test_images::kinds::{aarch64, arm, described, i386, kinds, seen, x86_64};
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
fn every_kind_has_the_symbols_and_properties_of_its_description() {
    for (kind, spec) in kinds() {
        let built = spec.build();
        assert_symbols(&built.bytes, &spec, &built, kind);
        let image = promises::keep(&built.bytes).unwrap();
        let tables = image.hash_tables();
        assert_eq!((tables.sysv, tables.gnu), (spec.sysv_hash, spec.gnu_hash), "{kind}");
        assert_eq!((image.machine(), image.class()), (spec.machine, if spec.wide { 2 } else { 1 }), "{kind}");
        assert_eq!(image.load_address(), spec.p_vaddr, "{kind}");
        assert_eq!(Image::extent(&built.bytes), Ok(built.bytes.len()), "{kind}");
        assert!(image.symbols().count() >= 3, "{kind}");
        assert!(format!("{image:?}").contains(&format!("{} bytes", built.bytes.len())), "{kind}");
    }
}

#[test]
fn an_image_may_lie_at_any_address_before_any_bytes() {
    for (kind, spec) in kinds() {
        let built = spec.build();
        for (shift, filler) in (0..8).zip([0, 0x12, 0xff].into_iter().cycle()) {
            let bytes = [&vec![filler; shift][..], &built.bytes, &vec![filler; 5000]].concat();
            assert_symbols(&bytes[shift..], &spec, &built, kind);
            assert_eq!(Image::extent(&bytes[shift..][..4096]), Ok(built.bytes.len()), "{kind}");
        }
    }
}

/// A name, the NUL after it, and the next string of the string table.
fn with_the_next_string(built: &Built<'_>, name: &str) -> String {
    let strings = String::from_utf8_lossy(&built.bytes[built.at(Part::Strtab)..]);
    let start = strings.find(&format!("{name}\0")).unwrap();
    strings[start..].split('\0').take(2).collect::<Vec<_>>().join("\0")
}

#[test]
fn a_look_up_compares_the_whole_name_and_version() {
    for (kind, spec) in kinds() {
        let built = spec.build();
        let image = Image::parse(&built.bytes).unwrap();
        for symbol in image.symbols().filter(|symbol| !symbol.name().is_empty()) {
            let name = symbol.name().to_str().unwrap();
            assert_eq!(image.symbol(name, None), Some(symbol), "{kind}: {name}");
            let two = with_the_next_string(&built, name);
            let (short, long, nul) = (&name[..name.len() - 1], format!("{name}_"), format!("{name}\0"));
            for other in [&name[1..], short, &long, &nul, &two] {
                assert_ne!(image.symbol(other, None), Some(symbol), "{kind}: {other:?}");
            }
            let Some(version) = symbol.version().map(|version| version.to_str().unwrap()) else { continue };
            assert_eq!(image.symbol(name, Some(version)), Some(symbol), "{kind}: {name}@{version}");
            for other in ["", "LINUX", "LINUX_2.6.390", "LINUX_2.60", SONAME, &format!("{version}\0")] {
                assert_eq!(image.symbol(name, Some(other)), None, "{kind}: {name}@{other:?}");
            }
        }
        assert_eq!(image.symbol("", None), None, "{kind}");
        assert_eq!(image.symbol("\0", None), None, "{kind}");
    }
}

#[test]
fn a_symbol_without_a_version_matches_no_version() {
    let symbols = vec![Sym { version: None, ..Sym::func("plain", V) }, Sym::func("versioned", V)];
    let built = Spec { symbols, ..Spec::default() }.build();
    let image = Image::parse(&built.bytes).unwrap();
    assert!(image.symbol("plain", None).is_some_and(|symbol| symbol.version().is_none()));
    assert_eq!(image.symbol("plain", Some(V)), None);
}

#[test]
fn a_name_in_two_versions_is_found_by_its_version() {
    let symbols = vec![Sym::func("clock", "LINUX_2.5"), Sym::func("clock", V)];
    let built = Spec { symbols, ..i386() }.build();
    let image = Image::parse(&built.bytes).unwrap();
    let of = |version| image.symbol("clock", version).map(|symbol| symbol.value());
    let [old, new] = [0, 1].map(|index| Some(built.symbols[index].st_value()));
    assert_eq!([of(Some("LINUX_2.5")), of(Some(V)), of(None)], [old, new, old]);
}

#[test]
fn the_hidden_bit_of_a_version_is_ignored() {
    let spec = x86_64();
    let hide = |built: &mut Built<'_>, field: &str| _ = built.set(field, built.get(field) | 0x8000);
    let mut symbols = spec.build();
    for index in 1..=symbols.symbols.len() {
        hide(&mut symbols, &format!("versym[{index}]"));
    }
    let mut definition = spec.build();
    hide(&mut definition, "verdef[1].vd_ndx");
    for built in [symbols, definition] {
        assert_symbols(&built.bytes, &spec, &built, "hidden");
    }
}

#[test]
fn without_hash_tables_the_symbols_end_at_the_string_table() {
    let symbols = vec![Sym::func("clock", V), Sym::func("time", V)];
    let image = Spec { symbols, sysv_hash: false, gnu_hash: false, p_vaddr: 0x4000, ..arm() };
    for (last, copies) in
        [([Part::Symtab, Part::Strtab, Part::Text], 0), ([Part::Strtab, Part::Symtab, Part::Text], 4)]
    {
        let spec = Spec { order: Part::with_last(&last), ..image.clone() };
        let mut built = spec.build();
        // The code looks like symbols: they count unless the string table comes before them.
        let (symtab, text) = (built.at(Part::Symtab), built.at(Part::Text));
        let symbol = built.bytes[symtab + 16..][..16].to_vec();
        let skew = (text - symtab).next_multiple_of(16) - (text - symtab);
        for place in built.bytes[text + skew..].chunks_exact_mut(16) {
            place.copy_from_slice(&symbol);
        }
        let symbols = Image::parse(&built.bytes).unwrap().symbols();
        assert_eq!(symbols.filter(|symbol| !symbol.name().is_empty()).count(), 2 + copies, "{last:?}");
    }
}

#[test]
fn only_the_string_table_and_the_symbol_table_are_necessary() {
    let spec = x86_64();
    let without = |tag| Image::parse(&spec.build().remove(tag).bytes).map(|image| seen(image.symbols()));
    for tag in ["DT_HASH", "DT_GNU_HASH", "DT_STRSZ", "DT_SYMENT", "DT_VERDEFNUM"] {
        assert_eq!(without(tag), Ok(described(&spec, &spec.build())), "{tag}");
    }
    assert_eq!(without("DT_STRTAB"), Err(ParseError::StringTable));
    assert_eq!(without("DT_SYMTAB"), Err(ParseError::SymbolTable));
}

#[test]
fn the_dynamic_section_ends_at_dt_null() {
    let mut built = arm().build();
    built.set("DT_HASH.d_tag", 0);
    assert_eq!(Image::parse(&built.bytes).unwrap_err(), ParseError::StringTable);
}

#[test]
fn a_gnu_hash_table_has_the_symbols_before_symoffset() {
    let count = |built: &Built<'_>| Image::parse(&built.bytes).unwrap().symbols().count();
    let gnu = Spec { sysv_hash: false, ..Spec::default() };
    assert_eq!(count(&gnu.build()), 0);
    assert_eq!(count(&Spec { symbols: vec![Sym::func("clock", V)], ..gnu }.build()), 1);
    let mut built = aarch64().build();
    for index in 0..3 {
        built.set(&format!("gnu_hash.bucket[{index}]"), 0);
    }
    assert_eq!(count(&built), 0);
    built.set("gnu_hash.symoffset", built.symbols.len() as u64 + 1);
    assert_eq!(count(&built), 4);
}

#[test]
fn the_iterator_is_fused() {
    let built = x86_64().build();
    let mut symbols = Image::parse(&built.bytes).unwrap().symbols();
    while symbols.next().is_some() {}
    assert_eq!((symbols.next(), symbols.next()), (None, None));
}

#[test]
fn a_64_bit_image_may_cross_the_end_of_the_address_space() {
    for before in [1, 0x100, 0x240] {
        let spec = Spec { p_vaddr: 0_u64.wrapping_sub(before), ..x86_64() };
        let built = spec.build();
        assert_symbols(&built.bytes, &spec, &built, &format!("{before:#x}"));
    }
}

/// No process maps one there. Its addresses are computed in 64 bits, so wrapped ones lie outside.
#[test]
fn a_32_bit_image_that_crosses_the_end_of_the_address_space_is_refused() {
    let size = arm().build().bytes.len() as u64;
    let at = |before| Spec { p_vaddr: (1 << 32) - before, ..arm() };
    assert_symbols(&at(size).build().bytes, &at(size), &at(size).build(), "at the end");
    for before in [1, 0x40, 0x80] {
        let refusal = Image::parse(&at(before).build().bytes).map(|_| ());
        assert_eq!(refusal, Err(ParseError::StringTable), "{before:#x}");
    }
}

#[test]
fn a_name_need_not_be_utf8() {
    let mut built = arm().build();
    let at = built.at(Part::Strtab) + built.get("sym[2].st_name") as usize;
    built.bytes[at..at + 2].copy_from_slice(&[0xff, 0xc0]);
    let image = Image::parse(&built.bytes).unwrap();
    assert!(image.symbols().any(|symbol| symbol.name().to_bytes().starts_with(&[0xff, 0xc0, b'v'])));
}
