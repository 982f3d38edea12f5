//! `cargo xtask clients --ratios`: what an operation of each client costs with the original and
//! with the patch. The two programs take turns, so a busy machine slows both.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Table};
use fs_err as fs;
use vdso_time_kernel_runner::step;
use xshell::{Shell, cmd};

use super::{PACKAGE, PATCHES, blocks, folder, name};
use crate::{page, workspace};

/// The heading of the page before the table.
const HEADING: &str = "\n## What an operation costs\n";

const MANIFEST: &str = r#"[package]
name = "operations"
edition = "2024"
[workspace]
[profile.release]
lto = true
codegen-units = 1
[dependencies]
fastrace = { version = "=0.7.19", features = ["enable"] }
governor = "=0.10.4"
moka = { version = "=0.12.16", features = ["sync", "quanta"] }
quanta = "0.12"
"#;

/// The patches for MANIFEST.
const REPLACED: [(&str, &str); 2] = [("quanta", "quanta-0.12"), ("fastant", "fastant")];

/// How often each program runs.
const TURNS: usize = 21;

/// A ratio above this needs a reason.
const BAR: f64 = 1.02;

/// Why the patch takes longer in an operation that misses the bar.
const REASONS: &[(&str, &str)] = &[
    ("fastrace: a local span", "two reads; fastant converts to nanoseconds when a span is reported"),
    ("moka: `get()`", "not known: a read alone is as fast"),
];

/// Measures, prints the table, and writes it into the page if told to.
pub(crate) fn run(sh: &Shell, write: bool, file: &Path) -> Result<()> {
    let original = build(sh, None)?;
    let patched = build(sh, Some(&original.1))?;
    let mut turns: BTreeMap<String, Vec<[f64; 2]>> = BTreeMap::new();
    let mut names = Vec::new();
    for _ in 0..TURNS {
        let [original, patched] = [&original.0, &patched.0].map(|program| measure(sh, program));
        for ((name, original), (_, patched)) in original?.into_iter().zip(patched?) {
            if !turns.contains_key(&name) {
                names.push(name.clone());
            }
            turns.entry(name).or_default().push([original, patched]);
        }
    }
    let mut table = Table::new();
    table.load_preset(ASCII_MARKDOWN);
    table.set_header(["operation", "original, ns", "patch, ns", "ratio", "why"]);
    for column in table.column_iter_mut().skip(1).take(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for name in names {
        let turns = &turns[&name];
        let of = |value: fn(&[f64; 2]) -> f64| median(turns.iter().map(value).collect());
        let ratio = of(|[original, patched]| patched / original);
        let reason = REASONS.iter().find(|(known, _)| *known == name).filter(|_| ratio > BAR);
        let [original, patched] = [of(|turn| turn[0]), of(|turn| turn[1])].map(|nanos| format!("{nanos:.1}"));
        let why = reason.map_or("", |(_, why)| *why);
        table.add_row([name.as_str(), &original, &patched, &format!("{ratio:.2}"), why]);
    }
    println!("{table}");
    if write {
        let old = fs::read_to_string(file)?;
        let (head, rest) = old.split_once(HEADING).context("the page lacks the heading of the ratios")?;
        fs::write(file, head.to_owned() + HEADING + &page::with_table(rest, &table.to_string()))?;
    }
    Ok(())
}

/// Builds the program. The patched one takes the other versions from the lock file of the original.
fn build(sh: &Shell, lock: Option<&str>) -> Result<(PathBuf, String)> {
    let kind = if lock.is_some() { "patched" } else { "original" };
    let package = folder().join(kind).join("operations");
    step(&format!("building the operations, {kind}"));
    fs::create_dir_all(package.join("src"))?;
    fs::write(package.join("src/main.rs"), include_str!("program.rs"))?;
    let mut manifest = MANIFEST.to_owned();
    let lock_file = package.join("Cargo.lock");
    if let Some(lock) = lock {
        writeln!(manifest, "[patch.crates-io]")?;
        for (name, patch) in REPLACED {
            let folder = workspace::root().join(PATCHES).join(patch);
            writeln!(manifest, "{name} = {{ path = '{}' }}", folder.display())?;
        }
        let (head, _) = lock.split_once(PACKAGE).context("the original has no lock file")?;
        let is_kept = |block: &&str| REPLACED.iter().all(|(replaced, _)| *replaced != name(block));
        let kept = blocks(lock).filter(is_kept);
        fs::write(&lock_file, kept.fold(head.to_owned(), |text, block| text + PACKAGE + block))?;
    }
    fs::write(package.join("Cargo.toml"), manifest)?;
    let target = folder().join(format!("operations-{kind}"));
    let cargo = workspace::cargo(sh).args(["build", "--release", "--quiet", "--target-dir"]).arg(&target);
    cargo.arg("--manifest-path").arg(package.join("Cargo.toml")).run()?;
    let made = fs::read_to_string(&lock_file)?;
    ensure!(!made.contains("[[patch.unused]]"), "cargo does not use the patch");
    Ok((target.join("release/operations"), made))
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
