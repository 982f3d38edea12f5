//! `cargo xtask clients --ratios`: what an operation of each client costs with the original and
//! with the patch. The two programs take turns, so a busy machine slows both.

use std::path::PathBuf;

use anyhow::{Error, Result};
use vdso_time_benches::harness::Spacing;
use vdso_time_benches::harness::samples::Samples;
use vdso_time_benches::pages::Table;
use vdso_time_kernel_runner::step;
use xshell::{Shell, cmd};

use super::{folder, patches, unlock};
use crate::workspace;

const MANIFEST: &str = r#"[package]
name = "operations"
edition = "2024"
[workspace]
[profile.release]
lto = true
codegen-units = 1
[dependencies]
fastant = "0.1"
fastrace = { version = "=0.7.19", features = ["enable"] }
governor = "=0.10.4"
metrics = "0.24"
metrics-util = { version = "=0.20.4", default-features = false, features = ["recency"] }
moka = { version = "=0.12.16", features = ["sync", "quanta"] }
quanta = "0.12"
"#;

/// The patches for MANIFEST.
const REPLACED: [(&str, &str); 2] = [("quanta", "quanta-0.12"), ("fastant", "fastant")];

/// What the programs measure.
const CONTENDERS: [&str; 2] = ["original", "patch"];

/// How often each program runs.
const TURNS: usize = 21;

/// Measures, prints the table, and writes it into the page if told to.
pub(super) fn run(sh: &Shell, write: bool) -> Result<()> {
    let programs = [build(sh, false)?, build(sh, true)?];
    let mut samples = Samples::default();
    for _ in 0..TURNS {
        for (program, name) in programs.iter().zip(CONTENDERS) {
            let printed = cmd!(sh, "{program} {name}").quiet().read()?;
            samples.add(&printed).map_err(Error::msg)?;
        }
    }
    let mut table = Table::new("operations", ["ns", CONTENDERS[0], CONTENDERS[1], "ratio"]);
    for operation in samples.rows() {
        let nanos = CONTENDERS.map(|name| samples.isolated(operation, name, 1));
        let ratio = samples.ratio(operation, Spacing::Isolated, [CONTENDERS[1], CONTENDERS[0]]);
        table.add(operation, nanos.into_iter().chain([ratio.map(|ratio| format!("{ratio:.2}"))]));
    }
    Ok(table.show(write)?)
}

/// Builds the program. With the patch it has the other versions of the original's lock file.
fn build(sh: &Shell, is_patched: bool) -> Result<PathBuf> {
    let package =
        |is_patched| folder().join(if is_patched { "patched" } else { "original" }).join("operations");
    let (original, package) = (package(false), package(is_patched));
    step(&format!("building {}", package.display()));
    let manifest = package.join("Cargo.toml");
    sh.write_file(package.join("src/main.rs"), include_str!("program.rs"))?;
    sh.write_file(
        &manifest,
        MANIFEST.to_owned() + &if is_patched { patches(&REPLACED) } else { String::new() },
    )?;
    if is_patched {
        sh.copy_file(original.join("Cargo.lock"), &package)?;
        unlock(sh, &manifest, &REPLACED.map(|(name, _)| name))?;
    }
    let cargo =
        workspace::cargo(sh).args(["build", "--release", "--quiet", "--manifest-path"]).arg(&manifest);
    cargo.env("CARGO_TARGET_DIR", package.join("target")).run()?;
    Ok(package.join("target/release/operations"))
}
