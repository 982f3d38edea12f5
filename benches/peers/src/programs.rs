//! Programs that link one contender each: how long they take to build, how large they are, what starting them takes, and their first call.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use goblin::elf::Elf;
use goblin::elf::section_header::SHF_EXECINSTR;
use vdso_time_benches::harness::Spacing;
use vdso_time_benches::harness::report::Table;
use vdso_time_benches::harness::samples::{Samples, Statistic};
use vdso_time_benches::harness::stats::median;

use crate::bars::{FIRST_CALL, FIRST_OWN_CALL};
use crate::foreign::run;

/// The feature of the package `start`, and what the tables call it.
const PROGRAMS: &[(&str, &str)] = &[
    ("", "nothing"),
    ("vdso-time", "vdso-time"),
    ("counter", "vdso-time's counter"),
    ("std", "std"),
    ("libc", "libc"),
    ("rustix", "rustix"),
    ("clocksource", "clocksource"),
    ("coarsetime", "coarsetime"),
    ("quanta", "quanta"),
    ("minstant", "minstant"),
    ("fastant", "fastant"),
];

/// The row of the times from a program's start to its end.
pub const START: &str = "start to end";

/// A built program.
pub struct Program {
    name: &'static str,
    path: PathBuf,
    /// The bytes of its code.
    text: u64,
    /// The crates that it takes, beside std.
    crates: usize,
    /// How long it took to build from nothing, if that was measured.
    build: Option<Duration>,
}

fn manifest() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("start/Cargo.toml")
}

fn cargo(command: &str, feature: &str) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([command, "--quiet", "--locked", "--manifest-path"]).arg(manifest());
    cargo.args(["--features", feature]).env_remove("RUSTFLAGS");
    cargo
}

/// Builds them all; from nothing, and in no haste, if that is to be timed.
pub fn build(folder: &Path, is_timed: bool) -> Result<Vec<Program>, String> {
    PROGRAMS.iter().map(|&(feature, name)| program(folder, is_timed, feature, name)).collect()
}

fn program(folder: &Path, is_timed: bool, feature: &str, name: &'static str) -> Result<Program, String> {
    let target = folder.join("start").join(if feature.is_empty() { "nothing" } else { feature });
    if is_timed && target.exists() {
        fs::remove_dir_all(&target).map_err(|error| format!("{}: {error}", target.display()))?;
    }
    let start = Instant::now();
    run(cargo("build", feature).args(["--release", "--target-dir"]).arg(&target))?;
    let build = is_timed.then(|| start.elapsed());
    let path = target.join("release/start");
    let tree = run(cargo("tree", feature).args(["--edges", "normal", "--prefix", "none"]))?;
    let crates = tree.lines().filter_map(|line| line.split(' ').next()).collect::<BTreeSet<_>>().len() - 1;
    Ok(Program { name, text: text(&path)?, path, crates, build })
}

/// The bytes of the sections of code.
fn text(program: &Path) -> Result<u64, String> {
    let bytes = fs::read(program).map_err(|error| format!("{}: {error}", program.display()))?;
    let elf = Elf::parse(&bytes).map_err(|error| format!("{}: {error}", program.display()))?;
    let code = elf.section_headers.iter().filter(|section| section.sh_flags & u64::from(SHF_EXECINSTR) != 0);
    Ok(code.map(|section| section.sh_size).sum())
}

/// Starts each program so many times, in turns: what that takes, what its first call takes, and the page faults in that.
pub fn start(programs: &[Program], times: usize) -> Result<(Samples, Vec<f64>), String> {
    let mut samples = Samples::default();
    let mut faults = vec![Vec::new(); programs.len()];
    for _ in 0..times {
        for (program, faults) in programs.iter().zip(&mut faults) {
            let isolated = Spacing::Isolated.name();
            let start = Instant::now();
            let status = Command::new(&program.path).stdin(Stdio::null()).status();
            let nanos = start.elapsed().as_secs_f64() * 1e9;
            status.map_err(|error| format!("{}: {error}", program.path.display()))?;
            samples.add(&format!("{START}\t{isolated}\t{}\t{nanos}", program.name))?;
            for (row, argument) in [(FIRST_OWN_CALL, "again"), (FIRST_CALL, "first")] {
                let text = run(Command::new(&program.path).arg(argument))?;
                let Some((nanos, fault)) = text.trim().split_once('\t') else {
                    return Err(format!("{}: printed `{text}`", program.name));
                };
                samples.add(&format!("{row}\t{isolated}\t{}\t{nanos}", program.name))?;
                if row == FIRST_CALL {
                    faults.push(fault.parse().map_err(|error| format!("{fault}: {error}"))?);
                }
            }
        }
    }
    Ok((samples, faults.iter().map(|faults| median(faults)).collect()))
}

/// All that is known of the programs; times and bytes are those beyond the program that reads no clock.
pub fn table(programs: &[Program], samples: &Samples, faults: &[f64]) -> Table {
    let nanos =
        |row, name, statistic| samples.nanos(row, Spacing::Isolated, name, statistic).unwrap_or(f64::NAN);
    let (none, fewest) = (programs[0].name, programs[0].text);
    let mut rows = Vec::new();
    for (program, faults) in programs.iter().zip(faults) {
        let first = |statistic| format!("{:.0}", nanos(FIRST_CALL, program.name, statistic));
        let start = nanos(START, program.name, Statistic::Median) / 1e3;
        let least = nanos(START, none, Statistic::Median) / 1e3;
        rows.push(vec![
            program.name.into(),
            format!("{start:.0}"),
            format!("{:+.0}", start - least),
            first(Statistic::Median),
            first(Statistic::Minimum),
            format!("{faults:.0}"),
            format!("{:.0}", nanos(FIRST_OWN_CALL, program.name, Statistic::Median)),
            format!("{:+}", program.text as i64 - fewest as i64),
            program.crates.to_string(),
            program
                .build
                .map_or_else(|| "not measured".into(), |build| format!("{:.1}", build.as_secs_f64())),
        ]);
    }
    let head = [
        "a program that reads once",
        "start to end, us",
        "more",
        "first call, ns",
        "fastest, ns",
        "page faults",
        "after std's, ns",
        "code, bytes more",
        "crates",
        "build, s",
    ];
    Table { name: "peers-programs", head: head.map(str::to_string).to_vec(), rows }
}
