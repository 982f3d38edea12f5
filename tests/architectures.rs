//! An architecture is a line in `src/arch/targets.rs`, a table, and a system call in assembly. What
//! else lists architectures is compared with that list here.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use test_support::program;
use vdso_time::__private::TARGETS;

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(program::ROOT).join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn an_architecture_has_a_file_of_data_and_one_of_assembly() {
    let choice = read("src/arch/native/mod.rs");
    for [arch, ..] in TARGETS {
        let line = format!("#[cfg_attr(target_arch = \"{arch}\", path = \"{arch}.rs\")]");
        assert!(choice.contains(&line), "{arch} is not chosen");
        let [table, native] = ["table", "native"].map(|folder| read(&format!("src/arch/{folder}/{arch}.rs")));
        assert!(!table.contains("unsafe"), "the table of {arch} has code");
        assert!(native.contains(&format!("crate::arch::table::{arch}::ABI")), "{arch} has another's table");
    }
}

#[test]
fn cargo_requires_libc_for_targets_that_are_not_in_the_list() {
    let mut listed = String::new();
    // Its system calls go through libc.
    for [arch, width, _] in TARGETS.iter().filter(|[arch, ..]| *arch != "powerpc64") {
        let comma = if listed.is_empty() { "" } else { ", " };
        write!(listed, "{comma}all(target_arch = \"{arch}\", target_pointer_width = \"{width}\")").unwrap();
    }
    let linux = "any(target_os = \"linux\", target_os = \"android\")";
    let expected = format!("[target.'cfg(all({linux}, any(miri, not(any({listed})))))'.dependencies]");
    let manifest = read("Cargo.toml");
    let found = manifest.lines().find(|line| line.starts_with("[target.'cfg(")).unwrap();
    assert_eq!(found, expected);
}

#[test]
fn every_target_of_the_list_is_documented_and_checked() {
    let docs = read("Cargo.toml");
    let checked = read("xtask/src/check.rs") + &read("tools/vdso-time-kernel-runner/src/targets.rs");
    for [.., target] in TARGETS {
        let target = format!("\"{target}\"");
        assert!(docs.contains(&target), "docs.rs does not build {target}");
        assert!(checked.contains(&target), "`cargo xtask check` leaves out {target}");
    }
}
