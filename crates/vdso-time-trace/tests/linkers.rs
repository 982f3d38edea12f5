//! Every site is listed, called or not, whatever links the program: BFD and lld, with and without optimisation across crates, collection of
//! unused sections, and the C library inside; and a shared object has its own.
//!
//! On the other architectures `sites.rs` sees the same list, linked by their own BFD.

#![cfg(all(feature = "enabled", target_arch = "x86_64", target_env = "gnu"))]

#[path = "support/build.rs"]
mod build;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use build::{folder, output, package, rustc};
use test_support::not_run_here;

/// The sites of `tests/linked`, the program and its library.
const SITES: &str = "library/called, library/inlined, library/never called, library/private, program/called, program/never called";

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// What rustc is told besides the linker, and whether the crates are optimised together.
const WAYS: &[(&str, &[&str], &str)] = &[
    ("plain", &[], "off"),
    ("--gc-sections", &["-Clink-arg=-Wl,--gc-sections"], "off"),
    ("fat LTO", &[], "fat"),
    ("thin LTO", &[], "thin"),
    ("+crt-static", &["-Ctarget-feature=+crt-static"], "off"),
    ("all", &["-Ctarget-feature=+crt-static", "-Clink-arg=-Wl,--gc-sections"], "fat"),
];

/// The folder of the `ld.lld` that comes with rustc, if one does.
fn folder_of_lld() -> Option<PathBuf> {
    let sysroot = output(rustc().args(["--print", "sysroot"])).ok()?;
    let folder = PathBuf::from(sysroot.trim_end()).join("lib/rustlib").join(TARGET).join("bin/gcc-ld");
    folder.join("ld.lld").is_file().then_some(folder)
}

/// The flags that choose a linker.
fn linker(name: &str) -> Option<Vec<String>> {
    let mut flags = vec![format!("-Clink-arg=-fuse-ld={name}")];
    if name == "lld" {
        flags.push(format!("-Clink-arg=-B{}", folder_of_lld()?.display()));
        // It may drop a section to which only its boundaries refer: its default since 13, which rustc turns off where lld is its own
        // choice.
        flags.push("-Clink-arg=-Wl,-z,start-stop-gc".into());
    }
    Some(flags)
}

fn build(linker: &str, flags: &[String], lto: &str, what: &[&str]) -> PathBuf {
    let folder = folder(&format!("linked-{linker}"));
    let mut cargo = Command::new(env!("CARGO"));
    cargo.arg(what[0]).args(["--release", "--target", TARGET]).args(&what[1..]);
    cargo.arg("--manifest-path").arg(package().join("tests/linked/Cargo.toml"));
    cargo.arg("--target-dir").arg(&folder);
    cargo.env("CARGO_PROFILE_RELEASE_LTO", lto).env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    output(&mut cargo).unwrap_or_else(|error| panic!("{error}"));
    folder.join(TARGET).join("release")
}

fn lists_all_sites(name: &str) {
    let Some(chosen) = linker(name) else {
        return not_run_here(name, "rustc comes without lld here");
    };
    for (way, flags, lto) in WAYS {
        let flags: Vec<String> =
            chosen.iter().cloned().chain(flags.iter().map(ToString::to_string)).collect();
        let program = build(name, &flags, lto, &["build", "--bin", "linked"]).join("linked");
        // lld signs what it links.
        let bytes = fs::read(&program).unwrap();
        let is_lld = bytes.windows(11).any(|bytes| bytes == b"Linker: LLD");
        assert_eq!(is_lld, name == "lld", "{way}: another linker");
        let printed = output(&mut Command::new(&program)).unwrap();
        assert_eq!(printed, format!("{SITES}\n3 counted\n"), "{name}, {way}");
    }
    let object =
        build(name, &chosen, "off", &["rustc", "--lib", "--crate-type", "cdylib"]).join("liblinked.so");
    let program = build(name, &chosen, "off", &["build", "--bin", "linked"]).join("linked");
    let printed = output(Command::new(&program).arg(&object)).unwrap();
    assert_eq!(printed, format!("{SITES}\n3 counted\n4 in the shared object\n"), "{name}");
}

#[test]
fn bfd_lists_all_sites() {
    lists_all_sites("bfd");
}

#[test]
fn lld_lists_all_sites() {
    lists_all_sites("lld");
}
