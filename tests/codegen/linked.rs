//! The promises: a library runs on every glibc on which it ran without the crate, and a program can
//! link two libraries that each contain the crate.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use goblin::elf::Elf;
use test_support::{has_tool, not_run_here, program};

use crate::place;

const SOURCE: &str = "tests/codegen/programs/shared.rs";

/// Returns the versions of glibc that a shared library needs, each as its numbers.
fn needed_glibc(library: &Path) -> Vec<Vec<u32>> {
    let file = fs::read(library).unwrap();
    let elf = Elf::parse(&file).unwrap();
    let mut found = Vec::new();
    for needed in elf.verneed.iter().flatten() {
        for version in &needed {
            let name = elf.dynstrtab.get_at(version.vna_name).unwrap_or_default();
            if let Some(number) = name.strip_prefix("GLIBC_") {
                found.push(
                    number
                        .split('.')
                        .map(|part| part.parse().unwrap())
                        .collect(),
                );
            }
        }
    }
    found
}

/// Compares the glibc that the library needs with the crate and without it. Both use thread-local
/// storage, so both need ld.so by name: weak symbols of glibc bind to it.
#[test]
fn a_shared_library_needs_no_newer_glibc_with_the_crate() {
    const TRIPLE: &str = "x86_64-unknown-linux-gnu";
    if !cfg!(all(target_arch = "x86_64", target_env = "gnu")) {
        return not_run_here("the linker of this machine makes libraries for x86_64 and glibc");
    }
    let library = program::library(["vdso-time", "libc"], TRIPLE, "shared", &[]);
    let Some(library) = library else { return };
    let newest = |name: &str, more: &[&str]| {
        let to = place(name);
        let flags = [&["--crate-type=cdylib", "-Copt-level=3"], more].concat();
        program::compile(TRIPLE, SOURCE, &library, &flags, &to).unwrap();
        needed_glibc(&to).into_iter().max().expect("it needs glibc")
    };
    assert_eq!(
        newest("with.so", &["--cfg=with_the_crate"]),
        newest("without.so", &[])
    );
}

/// Builds the crate for LTO. Builds with another setting are other copies.
fn copy(triple: &str, name: &str, overflow_checks: &str) -> Option<PathBuf> {
    let settings = [
        ("CARGO_PROFILE_RELEASE_LTO", "true"),
        ("CARGO_PROFILE_RELEASE_PANIC", "abort"),
        ("CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS", overflow_checks),
    ];
    program::library(["vdso-time", ""], triple, name, &settings)
}

const ARCHIVE: [&str; 4] = [
    "--crate-type=staticlib",
    "-Copt-level=3",
    "-Clto",
    "-Cpanic=abort",
];

/// The targets, and the names that linkers have for them.
const TARGETS: [(&str, &str); 3] = [
    ("i686-unknown-linux-gnu", "elf_i386"),
    ("armv7-unknown-linux-gnueabihf", "armelf_linux_eabi"),
    ("x86_64-unknown-linux-gnu", "elf_x86_64"),
];

/// Links two copies as two versions in one dependency tree are linked, which LTO assembles
/// together.
#[test]
fn two_copies_of_the_crate_link_by_lto() {
    for (triple, _) in TARGETS {
        let Some(first) = copy(triple, "first", "true") else {
            continue;
        };
        let Some(second) = copy(triple, "second", "false") else {
            continue;
        };
        let other = format!("other={}", second.display());
        let flags = [
            &ARCHIVE[..],
            &[
                "--cfg=function=\"first\"",
                "--cfg=has_other",
                "--extern",
                &other,
            ],
        ]
        .concat();
        let to = place(&format!("{triple}.a"));
        program::compile(
            triple,
            "tests/codegen/programs/archive.rs",
            &first,
            &flags,
            &to,
        );
    }
}

/// Links libraries that two builds of the crate made, as the libraries of two vendors are. LLD
/// fails if both define a symbol that is not weak.
#[test]
fn two_static_libraries_with_the_crate_link_into_one_program() {
    if !has_tool("ld.lld", &["--version"]) {
        return;
    }
    for (triple, emulation) in TARGETS {
        let archive = |function: &str, overflow_checks: &str| {
            let library = copy(triple, function, overflow_checks)?;
            let to = place(&format!("{function}-{triple}.a"));
            let cfg = format!("--cfg=function=\"{function}\"");
            let flags = [&ARCHIVE[..], &[&cfg]].concat();
            program::compile(
                triple,
                "tests/codegen/programs/archive.rs",
                &library,
                &flags,
                &to,
            )?;
            Some(to)
        };
        let Some(first) = archive("first", "true") else {
            continue;
        };
        let Some(second) = archive("second", "false") else {
            continue;
        };
        let mut lld = Command::new("ld.lld");
        lld.args([
            "-m",
            emulation,
            "--relocatable",
            "--undefined=first",
            "--undefined=second",
            "-o",
        ]);
        program::run(lld.arg(place("linked.o")).args([first, second])).unwrap();
    }
}
