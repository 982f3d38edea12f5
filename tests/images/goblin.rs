//! goblin, which shares no code with the parser, sees the same symbols: in the images of the
//! builder and of linkers, and in this process's vDSO, on each machine of `cargo xtask matrix`.
#![allow(unsafe_code, reason = "the mapped image is read")]

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use goblin::elf::Elf;
use goblin::elf::section_header::SHN_ABS;
use goblin::elf::sym::{STB_GLOBAL, STB_WEAK, STT_FUNC, STT_NOTYPE};
use test_images::kinds::kinds;
use test_images::{Spec, promises};
use test_support::maps::{self, Mapping};
use test_support::not_run::target_tmpdir;
use test_support::{has_proc, has_tool, not_run_here, oracle};
use vdso_time::LocateError;
use vdso_time::elf::{Image, ParseError};
use vdso_time::vdso::Vdso;

/// Fails unless both see the same symbols that can be called: name, value, size.
#[track_caller]
fn agree(what: &str, bytes: &[u8]) {
    let image = Image::parse(bytes).unwrap_or_else(|error| panic!("{what}: {error}"));
    let ours = image.symbols().map(|symbol| {
        (
            symbol.name().to_bytes().to_vec(),
            symbol.value(),
            symbol.size(),
        )
    });
    let elf = Elf::parse(bytes).unwrap();
    let callable = elf.dynsyms.iter().filter(|symbol| {
        [STT_FUNC, STT_NOTYPE].contains(&symbol.st_type())
            && [STB_GLOBAL, STB_WEAK].contains(&symbol.st_bind())
            && ![0, SHN_ABS as usize].contains(&symbol.st_shndx)
            && symbol.st_value.wrapping_sub(image.load_address()) < bytes.len() as u64
    });
    let goblins = callable.map(|symbol| {
        let name = elf
            .dynstrtab
            .get_at(symbol.st_name)
            .unwrap()
            .as_bytes()
            .to_vec();
        (name, symbol.st_value, symbol.st_size)
    });
    let goblins: BTreeSet<_> = goblins.collect();
    assert!(!goblins.is_empty(), "{what}");
    assert_eq!(ours.collect::<BTreeSet<_>>(), goblins, "{what}");
}

#[test]
fn goblin_sees_the_same_symbols_in_every_kind_of_image() {
    // Without a hash table, goblin cannot count the symbols. It misreads the 64-bit words of S/390.
    let countable = |spec: &Spec<'_>| (spec.sysv_hash || spec.gnu_hash) && !spec.has_wide_hash();
    for (kind, spec) in kinds().into_iter().filter(|(_, spec)| countable(spec)) {
        agree(kind, &spec.build().bytes);
    }
}

const STYLES: [&str; 3] = ["sysv", "gnu", "both"];

/// Links 1 to 12 symbols: GNU ld makes a GNU hash table of one bucket for one, and LLD for up to
/// seven.
#[test]
fn goblin_sees_the_same_symbols_in_the_images_of_linkers() {
    if !has_tool("gcc", &["--version"]) {
        return;
    }
    let directory = target_tmpdir().join("linked-images");
    fs::create_dir_all(&directory).unwrap();
    let run = |command: &str| {
        let (program, arguments) = command.split_once(' ').unwrap();
        let output = Command::new(program)
            .args(arguments.split(' '))
            .current_dir(&directory)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{command}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    };
    let functions: Vec<_> = (1..=12)
        .map(|number| format!("int f{number}(void) {{ return 0; }}"))
        .collect();
    fs::write(directory.join("script"), include_str!("linker-script")).unwrap();
    fs::write(directory.join("functions.c"), functions.join("\n")).unwrap();
    run("gcc -O1 -fpic -fno-asynchronous-unwind-tables -c functions.c");
    for linker in ["ld.bfd", "ld.lld"] {
        if !has_tool(linker, &["--version"]) {
            continue;
        }
        for (style, count) in STYLES
            .into_iter()
            .flat_map(|style| (1..=12).map(move |count| (style, count)))
        {
            let names: Vec<_> = (1..=count).map(|number| format!("f{number}")).collect();
            let versions = format!("V {{ global: {}; local: *; }};", names.join("; "));
            fs::write(directory.join("versions"), versions).unwrap();
            run(&format!(
                "{linker} -shared --soname=image --version-script=versions -T script --hash-style={style} \
                 -o image functions.o"
            ));
            let what = format!("{linker}, {style}, {count} functions");
            let bytes = fs::read(directory.join("image")).unwrap();
            if Image::parse(&bytes).err() == Some(ParseError::ByteOrder) {
                return not_run_here("gcc is another machine's, of the other byte order");
            }
            agree(&what, &bytes);
            let image = promises::keep(&bytes).unwrap();
            let is_found = |name: &String| image.symbol(name, Some("V")).is_some();
            assert!(names.iter().all(is_found), "{what}");
        }
    }
}

#[test]
fn goblin_sees_the_same_symbols_in_this_process_where_the_kernel_mapped_them() {
    if !has_proc() {
        return;
    }
    let found = Vdso::locate();
    let Ok(vdso) = found else {
        // Under valgrind the kernel still has the address of the image that is unmapped.
        let is_missing = matches!(found, Err(LocateError::Absent | LocateError::Unmapped));
        assert!(is_missing && oracle::sysinfo_ehdr() == 0, "{found:?}");
        return not_run_here(format!("this process has no vDSO: {found:?}"));
    };
    let base = vdso.base().addr();
    assert_eq!(base, oracle::sysinfo_ehdr());
    let mut maps = maps::all("self").unwrap().into_iter();
    let Mapping { range, name } = maps.find(|mapping| mapping.range.start == base).unwrap();
    assert!(["[vdso]", ""].contains(&&*name), "{vdso:?} is {name}"); // gVisor's has no name
    assert!(
        base + vdso.size() <= range.end,
        "{vdso:?} is larger than {range:x?}"
    );
    // SAFETY: the kernel says that these bytes are mapped, and no thread writes to them.
    let bytes = unsafe { std::slice::from_raw_parts(vdso.base(), range.len()) };
    agree("this process", bytes);
    promises::keep(bytes).unwrap();
    for (symbol, address) in vdso.symbols() {
        let address = address.addr();
        // Of two names for the same code it is either.
        let found = vdso.symbol_at(address).map(|found| found.value());
        assert_eq!(found, Some(symbol.value()), "{symbol:?}");
        let name = symbol.name().to_str().unwrap();
        let version = symbol.version().map(|version| version.to_str().unwrap());
        let address = if name.is_empty() { None } else { Some(address) };
        for version in [version, None] {
            assert_eq!(
                vdso.symbol_address(name, version).map(<*const ()>::addr),
                address,
                "{symbol:?}"
            );
        }
        assert!(
            version.is_none() || vdso.symbol_address(name, Some("LINUX_9.9")).is_none(),
            "{symbol:?}"
        );
    }
}
