//! `cargo xtask check`: type-checks and lints the library for every target. A warning is a failure.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use fs_err as fs;
use xshell::Shell;

use crate::targets::{ARCHES, Arch, CORE_TARGETS, STD_TARGETS};
use crate::toolchain::Compiler;
use crate::{cache, step, workspace};

/// Arguments for cargo.
type Features = &'static [&'static str];

const DEFAULT: Features = &[];
const NONE: Features = &["--no-default-features"];
const ALL: Features = &["--all-features"];
/// `std` needs more than `core`.
const COUNTER: Features = &["--features", "counter"];

/// Every `no_std` crate is linked to this one. A check reads nothing of it.
const COMPILER_BUILTINS: &str = "\
#![feature(compiler_builtins)]
#![compiler_builtins]
#![allow(internal_features)]
#![no_std]
";

pub(crate) fn run(names: &[String]) -> Result<ExitCode> {
    let targets = targets(names)?;
    let compiler = Compiler::oldest()?;
    let rustlib = compiler.rustlib()?;
    let sh = workspace::shell()?;
    for triple in STD_TARGETS.iter().filter(|triple| is_named(names, triple)) {
        println!("{triple}, with std");
        let cargo = compiler.cargo(&sh, "check").env("RUSTC_BOOTSTRAP", "1");
        let cargo = cargo.args(["check", "--quiet", "--tests", "--package", "vdso-time-portable"]);
        cargo.args(["-Zbuild-std=std,panic_abort,test", "--target", triple]).run()?;
    }
    for (triple, feature_sets) in &targets {
        make_core(&compiler, &rustlib, triple).with_context(|| format!("core for {triple}"))?;
        for features in *feature_sets {
            println!("{triple} {}", features.join(" "));
            let cargo = compiler.clippy(&sh, "check").env("RUSTFLAGS", "-Dwarnings");
            let cargo = cargo.args(["check", "--quiet", "--lib", "--package", "vdso-time"]);
            cargo.args(["--target", triple]).args(*features).run()?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The targets whose names contain one of these, with the feature sets to check.
fn targets(names: &[String]) -> Result<Vec<(&'static str, &'static [Features])>> {
    // `std` is there only if it is packaged.
    let features = |arch: &Arch| if arch.is_packaged { &[DEFAULT, NONE, ALL][..] } else { &[COUNTER, NONE] };
    let mut targets: Vec<_> = ARCHES.iter().map(|arch| (arch.triple, features(arch))).collect();
    targets.dedup();
    targets.extend(CORE_TARGETS.iter().map(|(triple, has_table)| {
        (*triple, if *has_table { &[COUNTER, NONE][..] } else { &[COUNTER][..] })
    }));
    let all = || targets.iter().map(|(triple, _)| triple).chain(STD_TARGETS);
    if let Some(name) = names.iter().find(|name| !all().any(|triple| triple.contains(&***name))) {
        bail!("no target's name contains `{name}`; `cargo xtask check` prints all of them");
    }
    targets.retain(|(triple, _)| is_named(names, triple));
    Ok(targets)
}

fn is_named(names: &[String], triple: &str) -> bool {
    names.is_empty() || names.iter().any(|name| triple.contains(&**name))
}

/// Compiles the metadata of `core`, which is all that a type-check reads. cargo's `-Zbuild-std` does
/// so for each target folder again, and builds `compiler_builtins` too.
fn make_core(compiler: &Compiler, rustlib: &Path, triple: &str) -> Result<()> {
    let library = rustlib.join(triple);
    let source = rustlib.join("src/rust/library/core/src/lib.rs");
    cache::build_once(&library, |draft| {
        step(&format!("compiling core for {triple}"));
        let folder = draft.join("lib");
        fs::create_dir_all(&folder)?;
        let builtins = draft.join("compiler_builtins.rs");
        fs::write(&builtins, COMPILER_BUILTINS)?;
        let sh = Shell::new()?;
        for (name, source) in [("core", &source), ("compiler_builtins", &builtins)] {
            let rustc = compiler.rustc(&sh).env("RUSTC_BOOTSTRAP", "1");
            let rustc = rustc.args(["--edition", "2021", "--crate-type", "rlib", "--emit", "metadata"]);
            let rustc = rustc.args(["--cap-lints", "allow", "-Z", "force-unstable-if-unmarked"]);
            let rustc = rustc.args(["--target", triple, "--crate-name", name]).arg("-L").arg(&folder);
            rustc.arg("--out-dir").arg(&folder).arg(source).run()?;
        }
        Ok(())
    })
}
