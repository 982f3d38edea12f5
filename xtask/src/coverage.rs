//! `cargo xtask coverage`: which part of the walker the fuzz targets and the properties reach, region by region.
//!
//! The compiler is the oldest supported one, for Debian has the LLVM tools that read what its programs write.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::fuzz::{self, TARGETS};
use crate::process::{stdout, step};
use crate::toolchain::Compiler;
use crate::{Error, cache, no_arguments, tools, workspace};

/// What is measured, and how much must be reached, in percent, of all of it and of the rule for the extent.
const ROOM: &str = "src/elf";
const EXTENT: &str = "dynamic.rs";
const LEAST: f64 = 95.0;

const FLAGS: &[&str] = &["-Cinstrument-coverage"];
/// How many runs of each target, on top of its corpus. They are not led by coverage, and the seed is fixed.
const RUNS: &[&str] = &["-runs=300000", "-seed=1", "-verbosity=0"];

pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, Error> {
    no_arguments(arguments)?;
    let root = workspace::root();
    let folder = root.join("target/coverage");
    let raw = folder.join("raw");
    if raw.is_dir() {
        cache::remove(&raw)?;
    }
    let compiler = Compiler::find()?;
    let [profdata, cov] = tools::llvm_coverage()?;
    let mut programs = fuzz_targets(&compiler, &root, &folder, &raw)?;
    programs.extend(properties(&compiler, &folder, &raw)?);

    let profile = folder.join("all.profdata");
    stdout(
        Command::new(profdata).args(["merge", "--sparse", "-o"]).arg(&profile).args(cache::entries(&raw)?),
    )?;
    let mut report = Command::new(cov);
    report.arg("report").arg("--instr-profile").arg(&profile);
    for program in &programs {
        report.arg("--object").arg(program);
    }
    let report = stdout(report.arg("--sources").arg(root.join(ROOM)))?;
    let rows = rows(&report).ok_or_else(|| "llvm-cov's report is not as expected".to_owned())?;
    let mut low = Vec::new();
    for Row { file, regions, missed } in &rows {
        let percent = 100.0 * (1.0 - f64::from(*missed) / f64::from(*regions));
        println!("{file:<12} {regions:>4} regions, {missed:>2} not reached: {percent:.1} %");
        if percent < LEAST && [EXTENT, "TOTAL"].contains(file) {
            low.push(*file);
        }
    }
    if low.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    Err(Error::Failed(format!("less than {LEAST} % of {}", low.join(", "))))
}

/// Runs them; their programs.
fn fuzz_targets(compiler: &Compiler, root: &Path, folder: &Path, raw: &Path) -> Result<Vec<PathBuf>, String> {
    step("building the fuzz targets");
    let cargo = compiler.cargo("coverage");
    let programs = fuzz::build_with(cargo, FLAGS, root, &folder.join("fuzz"))?;
    for target in TARGETS {
        step(&format!("running {}", target.name));
        // What is found here goes into a corpus of its own.
        let (own, found) =
            (folder.join("corpus").join(target.name), root.join("fuzz/corpus").join(target.name));
        cache::create(&own)?;
        let mut command = target.command(&programs, root);
        command.args(RUNS).arg(own).env("LLVM_PROFILE_FILE", raw.join("%p.profraw"));
        if found.is_dir() {
            command.arg(found);
        }
        stdout(&mut command)?;
    }
    Ok(TARGETS.iter().map(|target| programs.join(target.name)).collect())
}

/// Runs the property tests; their program.
fn properties(compiler: &Compiler, folder: &Path, raw: &Path) -> Result<Vec<PathBuf>, String> {
    step("building and running the properties");
    let command = |last: &str| {
        let mut cargo = compiler.cargo("coverage");
        cargo.args(["test", "-p", "vdso-time-properties", "--target-dir"]).arg(folder.join("properties"));
        cargo.arg(last).env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\x1f"));
        // More cases reach no more; and build scripts write a profile too.
        cargo.env("PROPTEST_CASES", "2000").env("LLVM_PROFILE_FILE", raw.join("%p.profraw"));
        cargo
    };
    let messages = stdout(command("--no-run").arg("--message-format=json"))?;
    stdout(&mut command("--quiet"))?;
    let after = |line: &str| line.split(r#""executable":""#).nth(1)?.split('"').next().map(PathBuf::from);
    Ok(messages.lines().filter_map(after).collect())
}

struct Row<'a> {
    file: &'a str,
    regions: u32,
    missed: u32,
}

/// The rows of the report's table: a file or `TOTAL`, its regions, those not reached, and more.
fn rows(report: &str) -> Option<Vec<Row<'_>>> {
    let table = report.lines().filter(|line| line.starts_with("TOTAL") || line.contains(".rs "));
    table.map(row).collect::<Option<Vec<_>>>().filter(|rows| rows.len() > 1)
}

fn row(line: &str) -> Option<Row<'_>> {
    let mut words = line.split_whitespace();
    let mut next = || words.next();
    Some(Row { file: next()?, regions: next()?.parse().ok()?, missed: next()?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::rows;

    #[test]
    fn a_report_has_a_row_for_each_file_and_one_for_all() {
        let report = "Filename  Regions  Missed Regions  Cover\n-----\nhash.rs  60  3  95.00%\n-----\nTOTAL  90  3  96.67%\n";
        let rows = rows(report).unwrap();
        let seen: Vec<_> = rows.iter().map(|row| (row.file, row.regions, row.missed)).collect();
        assert_eq!(seen, [("hash.rs", 60, 3), ("TOTAL", 90, 3)]);
        assert!(super::rows("TOTAL 1 2 3").is_none());
    }
}
