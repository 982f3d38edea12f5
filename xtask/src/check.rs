//! `cargo xtask check`: type-checks and lints the library for every target. A warning is a failure.

use std::process::ExitCode;

use anyhow::{Result, bail};
use vdso_time_kernel_runner::targets::{ARCHES, Arch};
use vdso_time_kernel_runner::toolchain::Compiler;

use crate::workspace;

/// Arguments for cargo.
type Features = &'static [&'static str];

const DEFAULT: Features = &[];
const NONE: Features = &["--no-default-features"];
const ALL: Features = &["--all-features"];
/// `std` needs more than `core`.
const COUNTER: Features = &["--features", "counter"];

/// Further targets to compile for, with `core` alone, and whether the feature `libc`
/// makes a difference there.
const CORE_TARGETS: &[(&str, bool)] = &[
    // The architectures with a table, on Linux.
    ("x86_64-unknown-linux-musl", true),
    ("aarch64-unknown-linux-musl", true),
    ("aarch64_be-unknown-linux-gnu", true),
    ("arm-unknown-linux-gnueabihf", true),
    ("thumbv7neon-unknown-linux-gnueabihf", true),
    // The same on Android.
    ("aarch64-linux-android", true),
    ("armv7-linux-androideabi", true),
    ("i686-linux-android", true),
    ("x86_64-linux-android", true),
    // Linux where every call goes through libc.
    ("x86_64-unknown-linux-gnux32", false),
    ("powerpc64-unknown-linux-gnu", false),
    ("sparc64-unknown-linux-gnu", false),
    ("mips64el-unknown-linux-gnuabi64", false),
    // Another system, without std.
    ("wasm32-unknown-unknown", false),
];

/// Systems over whose std the tests of every system are type-checked.
const STD_TARGETS: &[&str] = &[
    "wasm32-unknown-unknown",
    "wasm32-wasip1",
    "x86_64-apple-darwin",
    "x86_64-pc-windows-gnu",
    "x86_64-unknown-freebsd",
    "x86_64-unknown-illumos",
];

pub(crate) fn run(names: &[String]) -> Result<ExitCode> {
    let targets = targets(names)?;
    let compiler = Compiler::oldest()?;
    let sh = workspace::shell()?;
    for triple in STD_TARGETS.iter().filter(|triple| is_named(names, triple)) {
        println!("{triple}, with std");
        let cargo = compiler.cargo(&sh, "check").env("RUSTC_BOOTSTRAP", "1");
        let cargo = cargo.args(["check", "--quiet", "--tests", "--package", "vdso-time-portable"]);
        let cargo = cargo.args(["--package", "vdso-time-quanta"]);
        cargo.args(["-Zbuild-std=std,panic_abort,test", "--target", triple]).run()?;
    }
    for (triple, feature_sets) in &targets {
        let core = (!feature_sets.contains(&ALL)).then_some("-Zbuild-std=core");
        for features in *feature_sets {
            println!("{triple} {}", features.join(" "));
            let cargo = compiler.clippy(&sh, "check").env("RUSTFLAGS", "-Dwarnings");
            let cargo = cargo.args(["check", "--quiet", "--lib", "--package", "vdso-time"]);
            let cargo = cargo.args(["--target", triple]).args(*features).args(core);
            core.iter().fold(cargo, |cargo, _| cargo.env("RUSTC_BOOTSTRAP", "1")).run()?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The targets whose names contain one of these, with the feature sets to check.
fn targets(names: &[String]) -> Result<Vec<(&'static str, &'static [Features])>> {
    // `std` is there only if it is packaged. Otherwise cargo compiles `core`.
    let features =
        |arch: &Arch| if arch.is_packaged() { &[DEFAULT, NONE, ALL][..] } else { &[COUNTER, NONE] };
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
