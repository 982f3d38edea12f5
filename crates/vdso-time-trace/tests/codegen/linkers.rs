//! Every site is listed, whether it is called or not, whatever links the program. `live::sites`
//! sees the same on other architectures.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use test_support::not_run_here;

use crate::{compile, libraries, run, rustc};

/// The sites of `programs/linked.rs` and `programs/library.rs`.
const SITES: &str = "library/called, library/inlined, library/never called, library/private, \
                     program/called, program/never called";

const WAYS: [&[&str]; 3] = [
    &[],
    &["-Clto=thin", "-Clink-arg=-Wl,--gc-sections"],
    &["-Clto=fat", "-Ctarget-feature=+crt-static", "-Clink-arg=-Wl,--gc-sections"],
];

/// The folder of the `ld.lld` that comes with rustc.
fn folder_of_lld() -> Option<PathBuf> {
    let sysroot = run(rustc().args(["--print", "sysroot"]));
    let folder = PathBuf::from(sysroot.trim_end()).join("lib/rustlib/x86_64-unknown-linux-gnu/bin/gcc-ld");
    folder.join("ld.lld").is_file().then_some(folder)
}

fn lists_all_sites(linker: &str, linker_flags: &[&str]) {
    let libraries = libraries("vdso-time-trace/enabled");
    let build = |source: &str, flags: &[&str], output: &str| {
        compile(&libraries, source, &[linker_flags, flags].concat(), output)
    };
    let rlib = build("library.rs", &["--crate-type=rlib"], &format!("lib{linker}.rlib"));
    let rlib = format!("--extern=library={}", rlib.display());
    for (number, flags) in WAYS.iter().enumerate() {
        let program = build("linked.rs", &[&[rlib.as_str()], *flags].concat(), &format!("{linker}-{number}"));
        // lld signs what it links.
        let bytes = fs::read(&program).unwrap();
        let is_lld = bytes.windows(11).any(|bytes| bytes == b"Linker: LLD");
        assert_eq!(is_lld, linker == "lld", "{flags:?}: another linker");
        let expected = format!("{SITES}\n3 counted\n");
        assert_eq!(run(&mut Command::new(&program)), expected, "{linker}, {flags:?}");
    }
}

#[test]
fn bfd_lists_all_sites() {
    lists_all_sites("bfd", &["-Clink-arg=-fuse-ld=bfd"]);
}

#[test]
fn lld_lists_all_sites() {
    let Some(folder) = folder_of_lld() else {
        return not_run_here("lld", "rustc comes without lld");
    };
    let folder = format!("-Clink-arg=-B{}", folder.display());
    // start-stop-gc is lld's default: it drops sections to which only their boundaries refer. rustc
    // turns it off where it chooses lld itself.
    lists_all_sites("lld", &["-Clink-arg=-fuse-ld=lld", &folder, "-Clink-arg=-Wl,-z,start-stop-gc"]);
}
