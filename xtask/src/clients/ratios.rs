//! `cargo xtask clients --ratios`: what an operation of each client costs with the original and
//! with the patch. The two programs take turns, so a busy machine slows both.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use vdso_time_kernel_runner::step;
use xshell::{Shell, cmd};

use super::{PAGE, folder, patches, unlock};
use crate::{page, workspace};

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

/// How often each program runs.
const TURNS: usize = 21;

/// Measures, prints the table, and writes it into the page if told to.
pub(super) fn run(sh: &Shell, write: bool) -> Result<()> {
    let programs = [build(sh, false)?, build(sh, true)?];
    let turn = || -> Result<_> { Ok([measure(sh, &programs[0])?, measure(sh, &programs[1])?]) };
    let turns = (0..TURNS).map(|_| turn()).collect::<Result<Vec<_>>>()?;
    let row = |(at, (name, _)): (usize, &(String, f64))| {
        let of = |value: fn([f64; 2]) -> f64| {
            median(turns.iter().map(|[original, patch]| value([original[at].1, patch[at].1])).collect())
        };
        let nanos = [of(|[original, _]| original), of(|[_, patch]| patch)].map(|nanos| format!("{nanos:.1}"));
        [vec![name.clone()], nanos.to_vec(), vec![format!("{:.2}", of(|[one, other]| other / one))]].concat()
    };
    let rows = turns[0][0].iter().enumerate().map(row).collect();
    let head = ["operation", "original, ns", "patch, ns", "ratio"];
    page::update(PAGE, "operations", write, |_| page::table(&head, rows))
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

fn measure(sh: &Shell, program: &Path) -> Result<Vec<(String, f64)>> {
    let output = cmd!(sh, "{program}").quiet().read()?;
    let value = |line: &str| {
        let (name, nanos) = line.split_once('\t').context("the program prints lines with a tab")?;
        Ok((name.to_owned(), nanos.parse()?))
    };
    output.lines().map(value).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
