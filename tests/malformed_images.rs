//! A malformed image is refused with the reason, or shows the symbols that are sound: each flaw that some walker crashed,
//! hung or read wild memory on, by name.

use test_support::image;
use test_support::image::kinds as image_kinds;

use vdso_time::elf::{Image, ParseError};

use image::{Built, PT_DYNAMIC, PT_LOAD, Part, Spec, Sym, Value};
use image_kinds::{aarch64, arm, described, seen, x86_64};

const V: &str = "LINUX_2.6";

/// Both classes, both byte orders, one hash table each and both, and addresses that are no offsets.
fn bases() -> [Spec<'static>; 4] {
    [
        Spec { p_vaddr: 0x2000, ..arm() },
        Spec { big_endian: true, p_vaddr: 0x2000, gnu_hash: true, ..arm() },
        Spec { p_vaddr: 0x2000, ..aarch64() },
        Spec { p_vaddr: 0x2000, ..x86_64() },
    ]
}

/// Fails unless each base, spoilt in this way, is refused for this reason.
#[track_caller]
fn assert_refused(reason: ParseError, spoil: impl Fn(&mut Built<'_>)) {
    for spec in bases() {
        let mut built = spec.build();
        spoil(&mut built);
        let refusal = Image::parse(&built.bytes).map(|image| seen(image.symbols()));
        assert_eq!(refusal, Err(reason), "machine {}", spec.machine);
    }
}

/// Fails unless an image, spoilt in this way, shows its symbols all the same.
#[track_caller]
fn assert_unharmed(spec: &Spec<'_>, spoil: impl Fn(&mut Built<'_>)) {
    let mut built = spec.build();
    let rows = described(spec, &built);
    spoil(&mut built);
    assert_eq!(Image::parse(&built.bytes).map(|image| seen(image.symbols())), Ok(rows));
}

/// Addresses outside the image: before it, right behind it, and as far as can be.
fn outside(built: &Built<'_>) -> [u64; 6] {
    let start = built.get("PT_LOAD.p_vaddr");
    let end = start + built.bytes.len() as u64;
    [start - 1, end, 1, 0x8000_0000, u64::MAX - 7, u64::MAX]
}

#[track_caller]
fn assert_refused_outside(tag: &str, reason: ParseError) {
    for index in 0..6 {
        assert_refused(reason, |built| {
            // Where the image has two hash tables, the other is not asked.
            if tag == "DT_GNU_HASH" && built.fields.iter().any(|field| field.name == "DT_HASH") {
                built.remove("DT_HASH");
            }
            if built.fields.iter().all(|field| field.name != tag) {
                let other = if tag == "DT_HASH" { "DT_GNU_HASH" } else { "DT_HASH" };
                built.set(&format!("{other}.d_tag"), if tag == "DT_HASH" { 4 } else { 0x6fff_fef5 });
                built.set(other, outside(built)[index]);
                return;
            }
            built.set(tag, outside(built)[index]);
        });
    }
}

#[test]
fn each_table_outside_the_image_is_refused() {
    assert_refused_outside("DT_STRTAB", ParseError::StringTable);
    assert_refused_outside("DT_SYMTAB", ParseError::SymbolTable);
    assert_refused_outside("DT_HASH", ParseError::SysvHash);
    assert_refused_outside("DT_GNU_HASH", ParseError::GnuHash);
    assert_refused_outside("DT_VERSYM", ParseError::Versions);
    assert_refused_outside("DT_VERDEF", ParseError::Versions);
}

#[test]
fn what_is_not_elf_is_refused() {
    for at in 0..4 {
        assert_refused(ParseError::NotElf, |built| built.bytes[at] ^= 1);
    }
    assert_eq!(Image::parse(b"").unwrap_err(), ParseError::NotElf);
}

#[test]
fn an_unknown_class_or_byte_order_is_refused() {
    for value in [0, 3, 0xff] {
        assert_refused(ParseError::Class, |built| _ = built.set("EI_CLASS", value));
        assert_refused(ParseError::ByteOrder, |built| _ = built.set("EI_DATA", value));
    }
}

#[test]
fn an_image_cut_short_is_refused_at_every_length() {
    for spec in bases() {
        let built = spec.build();
        let headers = built.get("e_phoff") + built.get("e_phnum") * built.get("e_phentsize");
        for len in 0..built.bytes.len() {
            let reason = match len {
                0..4 => ParseError::NotElf,
                4 | 5 => ParseError::Truncated,
                _ if (len as u64) < headers => ParseError::ProgramHeaders,
                _ => ParseError::Truncated,
            };
            assert_eq!(Image::parse(&built.bytes[..len]).map(|_| ()), Err(reason), "{len} bytes");
        }
    }
}

#[test]
fn program_headers_outside_the_first_page_are_refused() {
    for value in [4096, 1 << 20, 0x7fff_ffff, 0xffff_ffff, u64::MAX - 31, u64::MAX] {
        assert_refused(ParseError::ProgramHeaders, |built| _ = built.set("e_phoff", value));
    }
    for value in [128, 0x8000, 0xffff] {
        assert_refused(ParseError::ProgramHeaders, |built| _ = built.set("e_phnum", value));
    }
    // They end one byte too late.
    assert_refused(ParseError::ProgramHeaders, |built| {
        let size = built.get("e_phnum") * built.get("e_phentsize");
        built.bytes.resize(8192, 0);
        built.set("e_phoff", 4097 - size);
    });
}

#[test]
fn program_headers_of_a_wrong_size_are_refused() {
    for value in [0, 1, 31] {
        assert_refused(ParseError::ProgramHeaders, |built| _ = built.set("e_phentsize", value));
    }
    assert_refused(ParseError::ProgramHeaders, |built| {
        built.set("e_phentsize", built.get("e_phentsize") - 1);
    });
    // They are counted from one another by the size that the image says, odd or not.
    assert_refused(ParseError::NoDynamicSegment, |built| {
        built.set("e_phentsize", built.get("e_phentsize") + 1);
    });
    let segments = vec![PT_LOAD, PT_DYNAMIC, PT_DYNAMIC, 0];
    assert_unharmed(&Spec { segments, ..aarch64() }, |built| {
        built.set("e_phentsize", 112).set("e_phnum", 2);
    });
}

#[test]
fn an_image_without_program_headers_has_no_dynamic_segment() {
    assert_refused(ParseError::NoDynamicSegment, |built| _ = built.set("e_phnum", 0));
    assert_refused(ParseError::NoDynamicSegment, |built| _ = built.set("PT_DYNAMIC.p_type", 0));
}

#[test]
fn a_dynamic_segment_outside_the_loaded_one_is_refused() {
    assert_refused(ParseError::LoadSegment, |built| _ = built.set("PT_LOAD.p_type", 0));
    for value in [0, 1, 0x10] {
        assert_refused(ParseError::LoadSegment, |built| _ = built.set("PT_LOAD.p_filesz", value));
    }
    for value in [1 << 20, 0xffff_ffff, u64::MAX] {
        assert_refused(ParseError::LoadSegment, |built| _ = built.set("PT_LOAD.p_offset", value));
        assert_refused(ParseError::LoadSegment, |built| _ = built.set("PT_DYNAMIC.p_offset", value));
        assert_refused(ParseError::LoadSegment, |built| _ = built.set("PT_DYNAMIC.p_filesz", value));
    }
}

#[test]
fn a_segment_that_lies_about_its_size_is_refused() {
    // More bytes in the file than in memory.
    assert_refused(ParseError::LoadSegment, |built| {
        built.set("PT_LOAD.p_memsz", built.get("PT_LOAD.p_filesz") - 1);
    });
    // More than there are.
    for more in [1, 4096] {
        assert_refused(ParseError::Truncated, |built| {
            let size = built.get("PT_LOAD.p_filesz") + more;
            built.set("PT_LOAD.p_filesz", size).set("PT_LOAD.p_memsz", size);
        });
    }
    for size in [(1 << 20) + 1, 0x7fff_ffff, 0xffff_ffff] {
        assert_refused(ParseError::TooLarge, |built| {
            built.set("PT_LOAD.p_filesz", size).set("PT_LOAD.p_memsz", size);
        });
    }
    // 1 MiB is not too large.
    let largest = Spec { extent: 1 << 20, ..x86_64() };
    assert_unharmed(&largest, |built| assert_eq!(Image::extent(&built.bytes), Ok(1 << 20)));
    // More memory than bytes is what .bss is.
    assert_unharmed(&x86_64(), |built| _ = built.set("PT_LOAD.p_memsz", u64::MAX));
}

#[test]
fn a_string_table_in_which_nothing_ends_is_refused() {
    assert_refused(ParseError::StringTable, |built| {
        let size = built.get("DT_STRSZ") as usize;
        built.bytes[built.at.strtab..][..size].fill(b'a');
    });
    for size in [1 << 20, 0x7fff_ffff, 0xffff_ffff, u64::MAX] {
        assert_refused(ParseError::StringTable, |built| _ = built.set("DT_STRSZ", size));
    }
}

#[test]
fn a_name_that_does_not_end_hides_its_symbol_alone() {
    let order = vec![Part::Hash, Part::Symtab, Part::Dynamic, Part::Text, Part::Strtab];
    let symbols = ["first", "second", "last"].map(|name| Sym::func(name, V)).to_vec();
    let spec = Spec { symbols, order, versions: false, gnu_hash: false, ..Spec::default() };
    let mut built = spec.build();
    let rows = described(&spec, &built);
    // The strings are the names, then the image's own and the version's.
    let ends = built.get("sym[3].st_name") as usize + "last".len();
    built.set("DT_STRSZ", ends as u64);
    let image = Image::parse(&built.bytes).unwrap();
    assert_eq!(seen(image.symbols()), rows[..2]);
    assert_eq!(image.symbol("last", None), None);
}

#[test]
fn a_name_outside_the_string_table_hides_its_symbol_alone() {
    for value in [4096, 0x7fff_ffff, 0xffff_ffff] {
        let mut built = x86_64().build();
        let mut rows = described(&x86_64(), &built);
        rows.remove(built.callable().position(|symbol| *symbol == built.symbols[2]).unwrap());
        built.set("sym[3].st_name", value);
        assert_eq!(seen(Image::parse(&built.bytes).unwrap().symbols()), rows);
    }
}

#[test]
fn a_value_outside_the_image_hides_its_symbol_alone() {
    let spec = Spec { p_vaddr: 0x2000, ..x86_64() };
    for index in 0..6 {
        let mut built = spec.build();
        let mut rows = described(&spec, &built);
        rows.remove(built.callable().position(|symbol| *symbol == built.symbols[2]).unwrap());
        built.set("sym[3].st_value", outside(&built)[index]);
        assert_eq!(seen(Image::parse(&built.bytes).unwrap().symbols()), rows);
    }
}

#[test]
fn a_name_need_not_be_utf8() {
    let mut built = arm().build();
    let at = built.at.strtab + built.get("sym[2].st_name") as usize;
    built.bytes[at..at + 2].copy_from_slice(&[0xff, 0xc0]);
    let image = Image::parse(&built.bytes).unwrap();
    assert!(image.symbols().any(|symbol| symbol.name().to_bytes().starts_with(&[0xff, 0xc0, b'v'])));
}

#[test]
fn a_symbol_of_another_size_is_refused() {
    for size in [1, 15, 17, 25, u64::MAX] {
        assert_refused(ParseError::SymbolTable, |built| _ = built.set("DT_SYMENT", size));
    }
}

#[test]
fn an_extreme_size_of_code_is_kept_and_does_no_harm() {
    let symbols = vec![Sym { size: u64::MAX, value: Value::Next, ..Sym::func("clock", V) }];
    assert_unharmed(&Spec { symbols, ..x86_64() }, |_| {});
}
