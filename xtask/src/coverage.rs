//! `cargo xtask coverage`: which regions of `src/elf` the fuzz target and the properties reach.
//!
//! The compiler is the oldest supported one, because Debian has LLVM's tools of its version.
//! cargo-llvm-cov does not run libFuzzer's programs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use fs_err as fs;
use serde_json::Value;
use xshell::cmd;

use crate::programs::executables;
use crate::toolchain::Compiler;
use crate::{cache, fuzz, step, tools, workspace};

/// What is measured, and how many percent of it must be reached. The same holds for one file alone:
/// the rule for the extent of an image.
const SOURCES: &str = "src/elf";
const EXTENT: &str = "headers.rs";
const LEAST: f64 = 95.0;

const FLAGS: &[&str] = &["-Cinstrument-coverage"];

/// The runs of the fuzz target, in addition to its corpus. They are not guided, and the seed is fixed.
const RUNS: &[&str] = &["-runs=300000", "-seed=1"];

pub(crate) fn run() -> Result<ExitCode> {
    let (root, folder) = (workspace::root(), workspace::target().join("coverage"));
    let profiles = folder.join("profiles");
    if profiles.is_dir() {
        fs::remove_dir_all(&profiles)?;
    }
    let sh = workspace::shell()?;
    let compiler = Compiler::oldest()?;
    let [profdata, cov] = tools::llvm_coverage()?;
    let profile = profiles.join("%p.profraw");
    let mut programs = vec![run_fuzz_target(&compiler, &folder, &profile)?];
    programs.extend(run_properties(&compiler, &folder, &profile)?);

    let (merged, inputs) = (folder.join("all.profdata"), cache::entries(&profiles)?);
    cmd!(sh, "{profdata} merge --sparse -o {merged} {inputs...}").quiet().run()?;
    let objects = programs.iter().flat_map(|program| [Path::new("--object"), program]);
    let export = cmd!(sh, "{cov} export --summary-only --instr-profile {merged}").args(objects);
    let export = export.arg("--sources").arg(root.join(SOURCES)).quiet().read()?;
    report(&serde_json::from_str::<Value>(&export)?["data"][0])
}

/// Runs the fuzz target, and returns its program.
fn run_fuzz_target(compiler: &Compiler, folder: &Path, profile: &Path) -> Result<PathBuf> {
    step("building and running the fuzz target");
    let sh = workspace::shell()?;
    let cargo = compiler.cargo(&sh, "coverage").env("LLVM_PROFILE_FILE", profile);
    let program = fuzz::build(cargo, FLAGS, &folder.join("fuzz"))?;
    // libFuzzer writes new inputs to the first folder.
    let new = folder.join("corpus");
    fs::create_dir_all(&new)?;
    let mut fuzzer = fuzz::fuzzer(&program);
    fuzzer.args(RUNS).arg(new).env("LLVM_PROFILE_FILE", profile);
    let corpus = workspace::root().join("fuzz/corpus/image");
    let output = fuzzer.args(corpus.is_dir().then_some(corpus)).output()?;
    ensure!(output.status.success(), "the target failed: {}", String::from_utf8_lossy(&output.stderr));
    Ok(program)
}

/// Runs the property tests, and returns their programs.
fn run_properties(compiler: &Compiler, folder: &Path, profile: &Path) -> Result<Vec<PathBuf>> {
    step("building and running the properties");
    let sh = workspace::shell()?;
    let cargo = || {
        let cargo = compiler.cargo(&sh, "coverage").args(["test", "--package", "vdso-time-properties"]);
        // The other programs of the package test the counter clock.
        let cargo = cargo.args(["--test", "properties", "--target-dir"]).arg(folder.join("properties"));
        let cargo = cargo.env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\x1f"));
        // More cases reach no more code.
        cargo.env("PROPTEST_CASES", "2000").env("LLVM_PROFILE_FILE", profile)
    };
    let programs = executables(cargo().arg("--no-run"), true)?;
    cargo().arg("--quiet").ignore_stdout().run()?;
    Ok(programs.into_iter().map(|program| program.path.into()).collect())
}

/// Prints the regions of each file. Fails if too few are reached.
fn report(export: &Value) -> Result<ExitCode> {
    let files = export["files"].as_array().context("llvm-cov lists no files")?;
    let files = files.iter().map(|file| (file["filename"].as_str().unwrap_or_default(), &file["summary"]));
    let (mut low, mut has_extent) = (Vec::new(), false);
    for (path, summary) in files.chain([("total", &export["totals"])]) {
        let (name, regions) = (path.rsplit('/').next().unwrap_or(path), &summary["regions"]);
        let percent = regions["percent"].as_f64().context("llvm-cov counts no regions")?;
        println!("{name:<12} {} of {} regions: {percent:.1} %", regions["covered"], regions["count"]);
        has_extent |= name == EXTENT;
        if percent < LEAST && [EXTENT, "total"].contains(&name) {
            low.push(name);
        }
    }
    ensure!(has_extent, "llvm-cov does not list {EXTENT} of {SOURCES}");
    ensure!(low.is_empty(), "less than {LEAST} % of {} is reached", low.join(", "));
    Ok(ExitCode::SUCCESS)
}
