//! `cargo xtask fuzz` runs the fuzz target, guided by coverage, with the installed compiler.
//! cargo-fuzz needs a nightly compiler and adds AddressSanitizer.
//!
//! `cargo xtask coverage` reports which regions of `src/elf` it and the properties reach. The
//! compiler is the oldest supported one, because Debian has LLVM's tools of its version.
//! cargo-llvm-cov does not run libFuzzer's programs.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, ensure};
use fs_err as fs;
use serde_json::Value;
use xshell::{Cmd, Shell, cmd};

use crate::programs::executables;
use crate::toolchain::Compiler;
use crate::{cache, tools, workspace};

/// Lets libFuzzer see which code a run reached and what it compared. Overflows panic.
const GUIDED: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
    "-Cdebug-assertions",
];

/// What is measured, and how many percent of it must be reached.
const SOURCES: &str = "src/elf";
const LEAST: f64 = 95.0;

/// The runs of the fuzz target, in addition to its corpus. They are not guided, and the seed is fixed.
const RUNS: &[&str] = &["-runs=300000", "-seed=1"];

pub(crate) fn run(seconds: u32) -> Result<ExitCode> {
    let root = workspace::root();
    let sh = Shell::new()?;
    let program = build(workspace::cargo(&sh), GUIDED, &workspace::target().join("fuzz"))?;
    let [corpus, artifacts] = ["fuzz/corpus/image/", "fuzz/artifacts/"].map(|folder| root.join(folder));
    fs::create_dir_all(&corpus)?;
    fs::create_dir_all(&artifacts)?;
    let mut fuzzer = fuzzer(&program);
    fuzzer.args([&format!("-max_total_time={seconds}"), "-print_final_stats=1"]);
    let output = fuzzer.arg(format!("-artifact_prefix={}/", artifacts.display())).arg(corpus).output()?;
    let text = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "the fuzz target failed; the input is in fuzz/artifacts\n{text}");
    let runs = text.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    println!("{} runs", runs.context("libFuzzer printed no statistics")?.trim());
    Ok(ExitCode::SUCCESS)
}

/// Prints the regions of each file. Fails if too few are reached.
pub(crate) fn coverage() -> Result<ExitCode> {
    let (root, folder) = (workspace::root(), workspace::target().join("coverage"));
    let [raw, merged, new] = ["%p.profraw", "all.profdata", "corpus"].map(|name| folder.join(name));
    let flags = ["-Cinstrument-coverage"];
    let (sh, compiler) = (workspace::shell()?, Compiler::oldest()?);
    if folder.is_dir() {
        for profile in cache::entries(&folder)?.iter().filter(|path| is_profile(path)) {
            fs::remove_file(profile)?;
        }
    }
    // libFuzzer writes new inputs to the first folder.
    fs::create_dir_all(&new)?;
    let cargo = || compiler.cargo(&sh, "coverage").env("LLVM_PROFILE_FILE", &raw);
    let program = build(cargo(), &flags, &folder.join("fuzz"))?;
    let mut fuzzer = fuzzer(&program);
    fuzzer.args(RUNS).arg(new).env("LLVM_PROFILE_FILE", &raw);
    let corpus = root.join("fuzz/corpus/image");
    let output = fuzzer.args(corpus.is_dir().then_some(corpus)).output()?;
    ensure!(output.status.success(), "the target failed: {}", String::from_utf8_lossy(&output.stderr));

    let cargo = || {
        let cargo = cargo().args(["test", "--package", "vdso-time-properties", "--test", "properties"]);
        // More cases reach no more code.
        cargo.env("CARGO_ENCODED_RUSTFLAGS", flags[0]).env("PROPTEST_CASES", "2000")
    };
    let tests = executables(cargo().arg("--no-run"), true)?;
    cargo().arg("--quiet").ignore_stdout().run()?;

    let [profdata, cov] = tools::llvm_coverage()?;
    let profiles = cache::entries(&folder)?.into_iter().filter(|path| is_profile(path));
    cmd!(sh, "{profdata} merge --sparse -o {merged}").args(profiles).quiet().run()?;
    let test = &tests.first().context("cargo built no properties")?.path;
    let export = cmd!(sh, "{cov} export --summary-only --instr-profile {merged} {program} --object {test}");
    let export: Value = serde_json::from_str(&export.arg(SOURCES).quiet().read()?)?;
    let data = &export["data"][0];
    let files = data["files"].as_array().context("llvm-cov lists no files")?;
    for file in files {
        println!("{:>5.1} % {}", percent(&file["summary"])?, file["filename"]);
    }
    let total = percent(&data["totals"])?;
    println!("{total:>5.1} % in all");
    ensure!(total >= LEAST, "less than {LEAST} % of the regions are reached");
    Ok(ExitCode::SUCCESS)
}

fn is_profile(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "profraw")
}

fn percent(summary: &Value) -> Result<f64> {
    summary["regions"]["percent"].as_f64().context("llvm-cov counts no regions")
}

/// The command of the fuzz target, without options that limit the run.
fn fuzzer(program: &Path) -> Command {
    let mut command = Command::new(program);
    // Larger inputs find no more: 8 bytes describe a change of the image.
    command.args(["-max_len=65", "-verbosity=0"]);
    command
}

/// Builds the fuzz target with this cargo and these flags of rustc, and returns its program.
fn build(cargo: Cmd<'_>, flags: &[&str], target_folder: &Path) -> Result<PathBuf> {
    let sh = Shell::new()?;
    let version = cmd!(sh, "rustc -vV").quiet().read()?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc names no host")?;
    let cargo = cargo.args(["build", "--release", "--locked", "--bins", "--manifest-path"]);
    let cargo = cargo.arg(workspace::root().join("fuzz/Cargo.toml"));
    // With --target, the flags do not apply to build scripts.
    let cargo = cargo.args(["--quiet", "--target", host, "--target-dir"]).arg(target_folder);
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f")).run()?;
    Ok(target_folder.join(host).join("release/image"))
}
