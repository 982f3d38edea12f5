//! Sums that go over, tables that are not aligned, addresses across the end of what they can express, and tables that are
//! missing: each flaw that some walker crashed on or read wild memory on, by name. And valgrind sees no read outside.

use test_support::image;
use test_support::image::kinds as image_kinds;

use std::env;
use std::process::Command;

use vdso_time::elf::{Image, ParseError};

use image::{Built, Spec};
use image_kinds::{aarch64, arm, described, i386, kinds, seen, x86_64};
use test_support::child::this_program;
use test_support::{has_tool, not_run_here};

/// Sets a number so that the sum with what is there already, in as many bits as the number has, goes over by 0 or 1.
#[track_caller]
fn assert_sum_is_refused(
    spec: &Spec<'_>,
    reason: ParseError,
    field: &str,
    other: impl Fn(&Built<'_>) -> u64,
) {
    for over in [0, 1] {
        let mut built = spec.build();
        let value = over - other(&built) as i64;
        built.set(field, value as u64);
        let refusal = Image::parse(&built.bytes).map(|image| seen(image.symbols()));
        assert_eq!(refusal, Err(reason), "{field} = {value:#x}, machine {}", spec.machine);
    }
}

#[test]
fn an_end_of_a_segment_that_goes_over_is_refused() {
    for spec in [arm(), x86_64()].map(|spec| Spec { p_offset: 0x240, p_vaddr: 0x240, ..spec }) {
        let refused = |field: &str, other: &str| {
            assert_sum_is_refused(&spec, ParseError::LoadSegment, field, |built| built.get(other));
        };
        refused("PT_LOAD.p_filesz", "PT_LOAD.p_offset");
        refused("PT_LOAD.p_offset", "PT_LOAD.p_filesz");
        refused("PT_DYNAMIC.p_filesz", "PT_DYNAMIC.p_offset");
        refused("PT_DYNAMIC.p_offset", "PT_DYNAMIC.p_filesz");
    }
}

#[test]
fn an_end_of_the_program_headers_that_goes_over_is_refused() {
    for spec in [arm(), x86_64()] {
        let size = |built: &Built<'_>| built.get("e_phnum") * built.get("e_phentsize");
        assert_sum_is_refused(&spec, ParseError::ProgramHeaders, "e_phoff", |built| size(built) + 64);
    }
}

#[test]
fn an_end_of_the_strings_that_goes_over_is_refused() {
    for spec in [arm(), x86_64()] {
        let start = |built: &Built<'_>| built.get("DT_STRTAB") + 16;
        assert_sum_is_refused(&spec, ParseError::StringTable, "DT_STRSZ", start);
    }
}

#[test]
fn a_size_of_a_hash_table_that_goes_over_is_refused() {
    let s390 = Spec {
        big_endian: true,
        machine: 22,
        wide_hash: true,
        sysv_hash: true,
        gnu_hash: false,
        ..aarch64()
    };
    for spec in [arm(), x86_64(), s390] {
        assert_sum_is_refused(&spec, ParseError::SysvHash, "hash.nbucket", |built| {
            built.get("hash.nchain") + 2
        });
        assert_sum_is_refused(&spec, ParseError::SysvHash, "hash.nchain", |built| {
            built.get("hash.nbucket") + 2
        });
    }
    for spec in [Spec { sysv_hash: false, gnu_hash: true, ..arm() }, aarch64()] {
        let buckets = |built: &Built<'_>| built.get("gnu_hash.nbuckets");
        assert_sum_is_refused(&spec, ParseError::GnuHash, "gnu_hash.bloom_size", buckets);
        let offset = |built: &Built<'_>| built.get("gnu_hash.symoffset") + 64;
        assert_sum_is_refused(&spec, ParseError::GnuHash, "gnu_hash.bucket[0]", offset);
    }
}

#[test]
fn a_bloom_filter_larger_than_the_image_is_refused() {
    for spec in [Spec { sysv_hash: false, gnu_hash: true, ..arm() }, aarch64()] {
        let built = spec.build();
        // In bytes, in 32 bits, that is what it was.
        let over = built.get("gnu_hash.bloom_size") + (1 << 32) / if spec.wide { 8 } else { 4 };
        for value in [0x1000, 0x1fff_ffff, over, 0xffff_ffff] {
            let mut built = built.clone();
            built.set("gnu_hash.bloom_size", value);
            assert_eq!(Image::parse(&built.bytes).map(|_| ()), Err(ParseError::GnuHash), "{value:#x}");
        }
    }
}

/// Fails unless the symbols are those of the image as it was built, but for their versions.
fn assert_unversioned(spec: &Spec<'_>, spoil: impl Fn(&mut Built<'_>)) {
    let mut built = spec.build();
    let rows = described(&Spec { versions: false, ..spec.clone() }, &built);
    spoil(&mut built);
    let image = Image::parse(&built.bytes).unwrap();
    assert_eq!(seen(image.symbols()), rows);
    let name = image.symbols().next().unwrap().name().to_str().unwrap();
    assert!(image.symbol(name, Some("LINUX_99")).is_some(), "the name alone decides");
}

#[test]
fn an_image_that_lacks_a_table_of_versions_has_no_versions() {
    for spec in [arm(), i386(), x86_64(), aarch64()] {
        assert_unversioned(&spec, |built| _ = built.remove("DT_VERDEF"));
        assert_unversioned(&spec, |built| _ = built.remove("DT_VERSYM"));
        assert_unversioned(&spec, |built| _ = built.remove("DT_VERDEF").remove("DT_VERDEFNUM"));
    }
}

/// The image with a second copy of all that stands in it behind it, at an odd distance, where all its tables are now.
fn misaligned(spec: &Spec<'_>) -> Vec<u8> {
    let mut built = spec.build();
    let size = built.bytes.len() as u64;
    let distance = size | 1;
    for table in [
        "DT_HASH",
        "DT_GNU_HASH",
        "DT_STRTAB",
        "DT_SYMTAB",
        "DT_VERSYM",
        "DT_VERDEF",
        "PT_DYNAMIC.p_offset",
        "e_phoff",
    ] {
        if built.fields.iter().any(|field| field.name == table) {
            built.set(table, built.get(table).wrapping_add(distance));
        }
    }
    let end = distance + size - spec.p_offset as u64;
    built.set("PT_LOAD.p_filesz", end).set("PT_LOAD.p_memsz", end);
    let copy = built.bytes.clone();
    built.bytes.resize(distance as usize, 0);
    built.bytes.extend(copy);
    built.bytes
}

#[test]
fn nothing_need_be_aligned() {
    for (name, spec) in kinds() {
        let rows = described(&spec, &spec.build());
        let image = misaligned(&spec);
        for shift in 0..8 {
            let bytes = [&vec![0; shift][..], &image].concat();
            let seen = Image::parse(&bytes[shift..]).map(|image| seen(image.symbols()));
            assert_eq!(seen.as_ref(), Ok(&rows), "{name}, {shift} bytes off");
        }
    }
}

#[test]
fn a_64_bit_image_may_lie_across_the_end_of_the_address_space() {
    for before in [1, 0x100, 0x240] {
        let spec = Spec { p_vaddr: 0_u64.wrapping_sub(before), ..x86_64() };
        let built = spec.build();
        let image = Image::parse(&built.bytes).unwrap();
        assert_eq!(seen(image.symbols()), described(&spec, &built), "{before:#x}");
    }
}

/// No process maps one there. Its addresses are computed in 64 bits, where those that went over lie outside.
#[test]
fn a_32_bit_image_across_the_end_of_the_address_space_is_refused() {
    let size = arm().build().bytes.len() as u64;
    let parse = |before: u64| {
        let built = Spec { p_vaddr: (1 << 32) - before, ..arm() }.build();
        Image::parse(&built.bytes).map(|image| image.symbols().count())
    };
    let symbols = Image::parse(&arm().build().bytes).unwrap().symbols().count();
    assert_eq!(parse(size), Ok(symbols));
    for before in [1, 0x40, 0x80] {
        assert_eq!(parse(before), Err(ParseError::StringTable), "{before:#x}");
    }
}

const UNDER_VALGRIND: &str = "VDSO_TIME_TEST_UNDER_VALGRIND";

/// Reads some images, in memory of exactly their size, with each of their numbers spoilt, or cut.
fn read_everything() {
    for spec in [arm(), Spec { big_endian: true, ..aarch64() }] {
        let mut built = spec.build();
        let (sound, end) = (built.bytes.clone(), built.bytes.len() as u64);
        for field in built.fields.clone() {
            for value in [end - 1, u64::MAX] {
                let bytes = built.set(&field.name, value).bytes.clone().into_boxed_slice();
                if let Ok(image) = Image::parse(&bytes) {
                    let name =
                        |symbol: vdso_time::elf::Symbol<'_>| image.symbol(symbol.name().to_str().ok()?, None);
                    std::hint::black_box(image.symbols().filter_map(name).count());
                }
                built.bytes.clone_from(&sound);
            }
        }
        for size in 0..256 {
            let bytes = sound[..size].to_vec().into_boxed_slice();
            std::hint::black_box(Image::parse(&bytes).is_ok());
        }
    }
}

#[test]
fn valgrind_sees_no_read_outside() {
    if env::var_os(UNDER_VALGRIND).is_some() {
        return read_everything();
    }
    if cfg!(target_feature = "crt-static") {
        let why =
            "in a static program valgrind does not see where malloc's blocks end, and takes libc to task";
        return not_run_here("valgrind", why);
    }
    if !has_tool(&["valgrind", "-q", "true"]) {
        return;
    }
    let mut command = Command::new("valgrind");
    command.args(["-q", "--error-exitcode=9"]).arg(this_program());
    command.args(["--exact", "valgrind_sees_no_read_outside", "--test-threads=1"]).env(UNDER_VALGRIND, "");
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    // A program of another architecture is not started by valgrind.
    if !text.contains("running 1 test") {
        return not_run_here("valgrind", text);
    }
    assert!(output.status.success() && text.contains("1 passed"), "{}\n{text}", output.status);
}
