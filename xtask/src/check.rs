//! `cargo xtask check`: type-checks and lints the library for every target. A warning is a failure.

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use vdso_time_kernel_runner::targets::ARCHES;
use vdso_time_kernel_runner::toolchain::Compiler;

use crate::workspace;

/// Further targets, compiled with `core` alone.
const CORE_TARGETS: &[&str] = &[
    // The architectures with a table, on Linux.
    "x86_64-unknown-linux-musl",
    "aarch64-unknown-linux-musl",
    "aarch64_be-unknown-linux-gnu",
    "arm-unknown-linux-gnueabihf",
    "thumbv7neon-unknown-linux-gnueabihf",
    // The same on Android.
    "aarch64-linux-android",
    "armv7-linux-androideabi",
    "i686-linux-android",
    "x86_64-linux-android",
    // Linux where every call goes through libc.
    "x86_64-unknown-linux-gnux32",
    "powerpc64-unknown-linux-gnu",
    "sparc64-unknown-linux-gnu",
    "mips64el-unknown-linux-gnuabi64",
    // Its `timespec` has a private field.
    "hexagon-unknown-linux-musl",
];

/// Targets without an operating system, which have the types and traits.
const BARE_TARGETS: &[&str] = &["x86_64-unknown-none", "thumbv7em-none-eabi"];

/// Other systems. The tests of every system are type-checked with the std of each.
const OTHER_SYSTEMS: &[&str] = &[
    "wasm32-unknown-unknown",
    "wasm32-wasip1",
    "x86_64-apple-darwin",
    // For windows-gnu, rustc calls dlltool of mingw.
    "x86_64-pc-windows-msvc",
    "x86_64-unknown-freebsd",
    "x86_64-unknown-illumos",
];

/// Arguments for `cargo check`. The tests of each architecture have the default features.
const WITH_STD: &[&str] = &[
    "--package vdso-time --package vdso-time-counter --lib --no-default-features",
    "--package vdso-time --package vdso-time-counter --lib --all-features",
];
const WITHOUT_STD: &[&str] = &["--package vdso-time --package vdso-time-counter --lib --no-default-features"];
/// `std` needs more than `core`.
const WITH_CORE: &[&str] = &[
    "--package vdso-time-counter --lib",
    "--package vdso-time-counter --package vdso-time-trace --lib --no-default-features \
     --features vdso-time-trace/enabled",
];
const PORTABLE_TESTS: &[&str] = &["--package vdso-time-portable --package vdso-time-quanta --tests"];

pub(crate) fn run(names: &[String]) -> Result<ExitCode> {
    let is_named = |triple: &&str| names.is_empty() || names.iter().any(|name| triple.contains(&**name));
    let selected = |triples: &[&'static str]| triples.iter().copied().filter(is_named).collect::<Vec<_>>();
    let mut linux: Vec<_> = ARCHES.iter().map(|arch| arch.triple).collect();
    linux.dedup();
    let groups = [
        (selected(&linux), None, WITH_STD),
        (selected(CORE_TARGETS), Some("core"), WITH_CORE),
        (selected(BARE_TARGETS), Some("core"), WITHOUT_STD),
        (selected(OTHER_SYSTEMS), Some("std,panic_abort,test"), &[WITH_STD, PORTABLE_TESTS].concat()),
    ];
    if groups.iter().all(|(triples, ..)| triples.is_empty()) {
        bail!("no target's name contains `{}`; `cargo xtask check` prints all of them", names.join("` or `"));
    }
    let compiler = Compiler::oldest()?;
    let sh = workspace::shell()?;
    for (triples, crates, checks) in groups.iter().filter(|(triples, ..)| !triples.is_empty()) {
        // On WASM, this version of clippy does not see a `const`.
        let mut flags = vec!["-Dwarnings -Aclippy::missing_const_for_thread_local".to_owned()];
        match crates {
            Some(crates) => {
                let sysroot = compiler.sysroot_to_check(triples, crates)?;
                flags.push(format!("--sysroot={}", sysroot.display()));
            }
            None => triples.iter().try_for_each(|triple| compiler.add_std(triple))?,
        }
        println!("{}", triples.join(" "));
        for check in *checks {
            println!("    {check}");
            let cargo =
                compiler.clippy(&sh, "check").env("RUSTFLAGS", flags.join(" ")).args(["check", "--quiet"]);
            let cargo = cargo.args(check.split(' '));
            let cargo = triples.iter().fold(cargo, |cargo, triple| cargo.args(["--target", triple]));
            cargo.run().context("`cargo xtask check TARGET` checks one target alone")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
