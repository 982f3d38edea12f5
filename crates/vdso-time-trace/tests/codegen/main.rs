//! What the compiler and the linker make of `traced!`, in programs that these tests build (x86_64).
//!
//! This program has no site of its own.

#![cfg(all(target_arch = "x86_64", target_pointer_width = "64", target_env = "gnu"))]

#[cfg(feature = "enabled")]
mod instructions;
#[cfg(feature = "enabled")]
mod linkers;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use test_support::not_run::target_tmpdir;
use vdso_time_trace::{Counter, report};

/// Runs a command, and returns its output.
fn run(command: &mut Command) -> String {
    for variable in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET"] {
        command.env_remove(variable);
    }
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn rustc() -> Command {
    Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
}

/// Builds vdso-time and vdso-time-trace, and returns their folder.
fn libraries(features: &str) -> PathBuf {
    let folder = target_tmpdir().join("trace").join(if features.is_empty() { "off" } else { "on" });
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--release", "--lib", "--manifest-path"]);
    cargo.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"));
    cargo.args(["-p", "vdso-time", "-p", "vdso-time-trace", "--no-default-features"]);
    // LTO needs bitcode, which cargo leaves out.
    cargo.args(["--config", "build.rustflags=['-Cembed-bitcode=yes']"]);
    cargo.args(["--features", features, "--target-dir"]);
    run(cargo.arg(&folder));
    folder.join("release")
}

/// Compiles a file of `programs` with the libraries.
fn compile(libraries: &Path, source: &str, flags: &[&str], output: &str) -> PathBuf {
    let output = libraries.join(output);
    let mut rustc = rustc();
    rustc.args(["--edition=2024", "-Copt-level=3", "-Ccodegen-units=1"]).args(flags);
    for library in ["vdso_time", "vdso_time_trace"] {
        let file = libraries.join(format!("lib{library}.rlib"));
        rustc.arg("--extern").arg(format!("{library}={}", file.display()));
    }
    for folder in [libraries, &libraries.join("deps")] {
        rustc.arg("-L").arg(folder);
    }
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/codegen/programs");
    run(rustc.arg(programs.join(source)).arg("-o").arg(&output));
    output
}

#[test]
fn without_the_feature_the_machine_code_is_that_of_the_bare_calls() {
    let listing = |features, flags: &[&str]| {
        let flags = [&["--emit=asm"], flags].concat();
        fs::read_to_string(compile(&libraries(features), "reads.rs", &flags, "reads.s")).unwrap()
    };
    let bare = listing("", &[]);
    for function in ["seconds", "nanoseconds", "in_a_loop"] {
        assert!(bare.contains(function), "{function}");
    }
    assert_eq!(bare, listing("", &["--cfg=traced"]));
    let enabled = "vdso-time-trace/enabled";
    assert_eq!(bare, listing(enabled, &[]));
    assert_ne!(bare, listing(enabled, &["--cfg=traced"]), "the listings show a difference");
}

#[test]
fn a_report_without_sites_says_why() {
    static CALLS: [Counter; 4] = [const { Counter::new() }; 4];
    let why = if cfg!(feature = "enabled") {
        "no site: this program has no call in `traced!`\n"
    } else {
        "no site: the feature `enabled` of vdso-time-trace is off\n"
    };
    #[cfg(not(feature = "enabled"))]
    assert!(vdso_time_trace::traced!("here", vdso_time::time()) > 0);
    assert_eq!(report(&CALLS).to_string(), why);
}
