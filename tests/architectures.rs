//! An architecture is a line in `src/arch/targets.rs`, a table, and a system call in assembly. What
//! else lists architectures is compared with that list here.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use test_support::{not_run_here, program};
use vdso_time::__private::TARGETS;

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(program::ROOT).join(path))
        .unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn cargo_requires_libc_for_targets_that_are_not_in_the_list() {
    let mut listed = String::new();
    // Its system calls go through libc.
    for [arch, width, _] in TARGETS.iter().filter(|[arch, ..]| *arch != "powerpc64") {
        let comma = if listed.is_empty() { "" } else { ", " };
        write!(
            listed,
            "{comma}all(target_arch = \"{arch}\", target_pointer_width = \"{width}\")"
        )
        .unwrap();
    }
    let linux = "any(target_os = \"linux\", target_os = \"android\")";
    let expected = format!(
        "[target.'cfg(all({linux}, any(miri, sanitize = \"cfi\", sanitize = \"kcfi\", not(any({listed})))))'.dependencies]"
    );
    let manifest = read("Cargo.toml");
    let found = manifest
        .lines()
        .find(|line| line.starts_with("[target.'cfg("))
        .unwrap();
    assert_eq!(found, expected);
}

/// Runs the build script as cargo does for a target, and returns the conditions that it sets.
fn conditions(script: &Path, target: &[(&str, &str)]) -> String {
    let mut command = Command::new(script);
    command.env_clear();
    for (name, value) in target {
        command.env(format!("CARGO_CFG_{name}"), value);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut set = Vec::new();
    for line in text.lines() {
        set.extend(line.strip_prefix("cargo::rustc-cfg=vdso_time_"));
    }
    set.join(" ")
}

/// Sets `CARGO_CFG_SANITIZE` itself, because the compiler does so only on nightly.
#[test]
fn the_build_script_chooses_libc_where_the_vdso_cannot_be_called() {
    let script = Path::new(env!("CARGO_TARGET_TMPDIR")).join("build-script");
    if let Err(why) = program::compiler() {
        return not_run_here(why);
    }
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc
        .current_dir(program::ROOT)
        .args(["--edition=2024", "build.rs", "-o"])
        .arg(&script);
    assert!(rustc.status().unwrap().success());
    let x86_64 = [
        ("TARGET_OS", "linux"),
        ("TARGET_ARCH", "x86_64"),
        ("TARGET_POINTER_WIDTH", "64"),
    ];
    let with = |name, value| conditions(&script, &[&x86_64[..], &[(name, value)]].concat());
    assert_eq!(conditions(&script, &x86_64), "linux clock");
    for (name, value, calls_libc) in [
        ("SANITIZE", "address", false),
        ("SANITIZE", "cfi", true),
        ("SANITIZE", "address,kcfi", true),
        ("MIRI", "", true),
        ("TARGET_POINTER_WIDTH", "32", true),
        ("TARGET_ARCH", "mips64", true),
        ("TARGET_ENDIAN", "big", false),
    ] {
        let expected = if calls_libc {
            "linux clock libc_fallback"
        } else {
            "linux clock"
        };
        assert_eq!(with(name, value), expected, "{name}={value}");
    }
}

#[test]
fn every_target_of_the_list_is_documented_and_checked() {
    let docs = read("Cargo.toml");
    let checked = read("xtask/src/check.toml");
    for [.., target] in TARGETS {
        let target = format!("\"{target}\"");
        assert!(docs.contains(&target), "docs.rs does not build {target}");
        assert!(
            checked.contains(&target),
            "`cargo xtask check` leaves out {target}"
        );
    }
}
