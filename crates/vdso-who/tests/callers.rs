//! Programs whose reads are known.
//!
//! With --nocapture, prints the table of docs/WHO.md.

#![allow(clippy::cast_precision_loss, reason = "shares need no more digits than f64 has")]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;
use test_support::nix::sys::resource::{UsageWho, getrusage};
use test_support::nix::sys::time::TimeValLike as _;
use test_support::not_run::target_tmpdir;
use test_support::not_run_here;

const WHO: &str = env!("CARGO_BIN_EXE_vdso-who");
const ROUNDS: u64 = 400;
const SECOND: u64 = 1_000_000_000;

struct Program {
    name: &'static str,
    path: PathBuf,
    /// Go's functions have the package before them, Rust's the crate.
    package: &'static str,
    /// Empty if the program has no lines.
    source: &'static str,
    /// How many clocks a read reads. Go's `time.Now` reads two.
    clocks: u64,
}

impl Program {
    /// Runs it, watched if there are options. Returns the CPU time of a round, and the report.
    fn run(&self, options: &[&str], rounds: u64, limit: u64) -> Option<(f64, Option<Value>)> {
        let report = target_tmpdir().join(format!("who-{}.json", std::process::id()));
        let mut command = if options.is_empty() {
            Command::new(&self.path)
        } else {
            let mut command = Command::new(WHO);
            command.args(options).arg("--json").arg("--output").arg(&report).arg("--").arg(&self.path);
            command
        };
        command.args([rounds, limit].map(|number| number.to_string()));
        let seconds_before = cpu_seconds();
        let Output { status, stdout, stderr } = match command.output() {
            Ok(output) => output,
            Err(error) => {
                not_run_here("exec", format!("{}: {error}", self.name));
                return None;
            }
        };
        let error = String::from_utf8_lossy(&stderr);
        if status.code() == Some(127) {
            not_run_here("exec", format!("{}: {status}", self.name));
            return None;
        }
        if !status.success() {
            let is_lacking = ["perf_event_open", "breakpoints"].iter().any(|lack| error.contains(lack));
            assert!(is_lacking, "{}: {status}: {error}", self.name);
            not_run_here("perf", format!("{}: {error}", self.name));
            return None;
        }
        let out = String::from_utf8_lossy(&stdout);
        let rounds = out.lines().find_map(|line| line.split_once(' ')?.0.parse::<f64>().ok());
        let rounds = rounds.unwrap_or_else(|| panic!("{}: {out}{error}", self.name));
        let json: Option<Value> = (!options.is_empty())
            .then(|| serde_json::from_str(&fs::read_to_string(&report).unwrap()).unwrap());
        let own_seconds = json.as_ref().and_then(|json| json["cpu_seconds"].as_f64());
        let seconds = own_seconds.unwrap_or_else(|| cpu_seconds() - seconds_before);
        let _ = fs::remove_file(report);
        Some((seconds / rounds, json))
    }

    /// The records of each of the two functions, and those of others.
    fn records(&self, report: &Value) -> [u64; 3] {
        let mut records = [0; 3];
        for caller in report["callers"].as_array().unwrap() {
            let function = caller["function"].as_str().unwrap();
            let name = function.strip_prefix(self.package).unwrap_or(function);
            let index = ["often", "seldom"].iter().position(|known| *known == name).unwrap_or(2);
            records[index] += caller["records"].as_u64().unwrap();
            if index < 2 && !self.source.is_empty() {
                let file = caller["file"].as_str().unwrap_or_default();
                assert!(file.ends_with(self.source) && caller["line"].is_u64(), "{}: {caller}", self.name);
            }
        }
        records
    }
}

/// The CPU time of the children that ended.
fn cpu_seconds() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    [usage.user_time(), usage.system_time()].map(|time| time.num_microseconds() as f64 / 1e6).iter().sum()
}

/// Compiles a program; none if that is not possible here.
fn compiled((name, tool, flags, source): (&'static str, &str, &str, &'static str)) -> Option<Program> {
    let path = target_tmpdir().join(format!("who-{}", name.replace(' ', "-")));
    let mut words = tool.split(' ');
    let mut command = Command::new(words.next().unwrap());
    command.args(words).args(flags.split_whitespace()).arg("-o").arg(&path).arg(source);
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/callers"));
    let missing = match command.env("CGO_ENABLED", "0").env("GO111MODULE", "off").output() {
        Ok(output) if output.status.success() => {
            let (package, clocks) = match source {
                "reads.go" => ("main.", 2),
                "reads.rs" => ("reads::", 1),
                _ => ("", 1),
            };
            let has_lines = flags.contains("-g") || (source == "reads.go" && flags.is_empty());
            let source = if has_lines { source } else { "" };
            return Some(Program { name, path, package, source, clocks });
        }
        Ok(output) => String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().to_owned(),
        Err(error) => error.to_string(),
    };
    not_run_here(tool, format!("{name}: {tool} {flags}: {missing}"));
    None
}

const PROGRAMS: [(&str, &str, &str, &str); 9] = [
    ("Rust", "rustc", "-O -g", "reads.rs"),
    ("C", "gcc", "-O2 -g", "reads.c"),
    ("C, no tables", "gcc", "-O2 -fno-omit-frame-pointer -fno-asynchronous-unwind-tables", "reads.c"),
    ("C, static", "gcc", "-O2 -static", "reads.c"),
    ("C, musl", "musl-gcc", "-O2 -static", "reads.c"),
    ("C, musl, stripped tables", "musl-gcc", "-O2 -static -fno-asynchronous-unwind-tables", "reads.c"),
    ("C, 32-bit", "i686-linux-gnu-gcc", "-O2 -g -static", "reads.c"),
    ("Go", "go build", "", "reads.go"),
    ("Go, no DWARF", "go build", "-ldflags=-w", "reads.go"),
];

#[test]
fn counts_are_within_1_percent_and_sampled_shares_within_10() {
    println!("| Program | counted | a counted read | 75 % sampled | slower, sampled |");
    println!("|---|---|---|---|---|");
    for program in PROGRAMS.into_iter().filter_map(compiled) {
        let name = program.name;
        let Some((alone, _)) = program.run(&[], u64::MAX >> 2, SECOND / 4) else { continue };
        let mut counted = "not counted | - ".to_owned();
        if let Some((_, report)) = program.run(&["--exact"], ROUNDS, 100 * SECOND) {
            let report = report.unwrap();
            let [often, seldom, others] = program.records(&report);
            let expected = [3, 1].map(|reads| reads * ROUNDS * program.clocks);
            let near = |counted: u64, expected: u64| counted.abs_diff(expected) * 100 <= expected;
            assert!(near(often, expected[0]) && near(seldom, expected[1]), "{name}: {expected:?} {report:#}");
            // The start of a program reads the clock, too.
            assert!(others < ROUNDS * program.clocks, "{name}: {report:#}");
            let trap = report["trap_ns"].as_f64().unwrap() / 1e3;
            counted = format!("{often} of {}, {seldom} of {} | {trap:.1} us", expected[0], expected[1]);
        }

        // A busy machine runs the program for a part of the time only.
        for seconds in [1, 4, 16] {
            let Some((sampled, report)) = program.run(&["--frequency=1999"], u64::MAX >> 2, seconds * SECOND)
            else {
                return;
            };
            let report = report.unwrap();
            let [in_often, in_seldom, elsewhere] = program.records(&report);
            let all = in_often + in_seldom + elsewhere;
            if all < 1000 && seconds < 16 {
                continue;
            }
            let share = 100.0 * in_often as f64 / all as f64;
            assert!((share - 75.0).abs() < 7.5, "{name}: {share} % {report:#}");
            println!("| {name} | {counted} | {share:.1} % | {:.1} % |", 100.0 * (sampled / alone - 1.0));
            break;
        }
    }
}
