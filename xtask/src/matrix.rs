//! `cargo xtask matrix`: runs the doctor and all tests on every machine of the table.

use std::fs::File;
use std::io::{self, Read as _};
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use fs_err as fs;
use serde_json::Value;
use vdso_time_kernel_runner::machine::Machine;
use vdso_time_kernel_runner::protocol::IMAGE;
use vdso_time_kernel_runner::runner::Run;
use vdso_time_kernel_runner::step;

use crate::machines;
use crate::matrix_page::{page, table};
use crate::matrix_table::{QUICK, machines};
use crate::programs::{DOCTOR, programs};
use crate::workspace;

const PAGE: &str = "docs/MATRIX.md";

/// Each guest has half a gigabyte of memory.
const MOST_AT_ONCE: usize = 8;

/// How long a program may run, on a busy machine.
const LIMIT: Duration = Duration::from_secs(600);

/// cargo builds for one machine at a time.
static BUILDING: Mutex<()> = Mutex::new(());

/// What came of a machine.
#[derive(Default)]
pub(crate) struct Row {
    pub(crate) machine: String,
    pub(crate) doctor: Value,
    pub(crate) passed: usize,
    pub(crate) failed_tests: usize,
    pub(crate) not_run: usize,
    /// Programs that failed or did not run to their end.
    pub(crate) errors: Vec<String>,
}

impl Row {
    fn of(machine: &Machine) -> Self {
        let mut row = Self { machine: machine.to_string(), ..Self::default() };
        if let Err(error) = row.fill(machine) {
            row.errors.push(format!("{error:#}"));
        }
        let counts = format!("{} passed, {} failed, {} not run", row.passed, row.failed(), row.not_run);
        let cause = row.doctor["cause"].as_str().unwrap_or("no doctor");
        step(&format!("{:<26} {counts}; {cause}", row.machine));
        row
    }

    /// A program that fails without naming a test counts as one.
    pub(crate) fn failed(&self) -> usize {
        self.failed_tests.max(self.errors.len())
    }

    /// Runs the programs on the machine.
    fn fill(&mut self, machine: &Machine) -> Result<()> {
        let turn = lock(&BUILDING);
        let setup = machines::setup(machine)?;
        let programs = programs(machine, &setup)?;
        drop(turn);
        let folder = workspace::target().join("matrix");
        fs::create_dir_all(&folder)?;
        let [out, err] = ["out", "err"].map(|name| folder.join(format!("{machine}.{name}")));
        let mut plan = setup.plan;
        let folder = workspace::root();
        plan.environment.push(("CARGO_MANIFEST_DIR".into(), folder.display().to_string()));
        let path = out;
        let (out, err) = (File::create(&path)?, File::create(err)?);
        let mut output = File::open(path)?;
        Run { limit: LIMIT, folder, out, err, ..Run::new(&plan, &programs)? }.run(|program, code| {
            let mut text = Vec::new();
            let mut result = output.read_to_end(&mut text).map(drop);
            if program.name != IMAGE {
                self.add(&program.name, code, &String::from_utf8_lossy(&text));
            } else if code == 0 {
                result = result.and_then(|()| write_image(machine, &text));
            }
            self.errors.extend(result.err().map(|error| error.to_string()));
        })
    }

    /// Adds what came of a program.
    fn add(&mut self, name: &str, code: u8, out: &str) {
        let is_whole = if name == DOCTOR {
            self.doctor = serde_json::from_str(out).unwrap_or_default();
            self.doctor["cause"].is_string()
        } else {
            self.add_tests(out).is_some()
        };
        if code != 0 {
            self.errors.push(format!("{name}: status {code}{}", excerpt(out)));
        } else if !is_whole {
            self.errors.push(format!("{name}: its output is incomplete"));
        }
    }

    /// Adds the counts in the last line of a test program. `None` if there is no such line.
    fn add_tests(&mut self, out: &str) -> Option<()> {
        let result = out.trim_end().lines().next_back()?.strip_prefix("test result: ")?;
        let count = |word| {
            let mut parts = result.split([';', '.']).map(str::trim);
            parts.find_map(|part| part.strip_suffix(word))?.trim().parse::<usize>().ok()
        };
        self.passed += count("passed")?;
        self.failed_tests += count("failed")?;
        self.not_run += out.lines().filter(|line| line.contains("not run here: ")).count();
        Some(())
    }
}

/// The failures of a test program, or the last lines of another's output.
fn excerpt(out: &str) -> String {
    const MOST: usize = 40;
    let lines: Vec<&str> = out.lines().collect();
    let failures = lines.iter().position(|line| *line == "failures:");
    let first = failures.unwrap_or(lines.len().saturating_sub(MOST));
    let lines = lines[first..].iter().take(MOST).flat_map(|line| ["\n    ", line]);
    lines.collect()
}

/// The tests look there, whatever CARGO_TARGET_DIR is.
fn write_image(machine: &Machine, image: &[u8]) -> io::Result<()> {
    let folder = workspace::root().join("target/vdso-images");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(format!("{machine}.so")), image)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn run(quick: bool, write: bool, named: Vec<Machine>) -> Result<ExitCode> {
    let is_wanted = |machine: &Machine| !quick || QUICK.contains(&&*machine.to_string());
    let machines = if named.is_empty() { machines(is_wanted) } else { named };
    let rows = run_all(&machines);
    println!("{}", table(&rows, ""));
    let failed: Vec<&Row> = rows.iter().filter(|row| row.failed() > 0).collect();
    for Row { machine, errors, .. } in &failed {
        println!("\nfailed on {machine} (output: target/matrix/{machine}.out):");
        println!("- {}", errors.join("\n- "));
    }
    if write {
        let file = workspace::root().join(PAGE);
        let old = fs::read_to_string(&file)?;
        fs::write(file, page(&old, &table(&rows, &old)))?;
    }
    Ok(ExitCode::from(u8::from(!failed.is_empty())))
}

/// Runs as many machines at a time as there are processors: each keeps one busy.
fn run_all(machines: &[Machine]) -> Vec<Row> {
    let queue = Mutex::new(machines.iter());
    let rows = Mutex::new(Vec::new());
    let next = || lock(&queue).next();
    let work = || {
        while let Some(machine) = next() {
            let row = Row::of(machine);
            lock(&rows).push(row);
        }
    };
    let workers = thread::available_parallelism().map_or(1, |count| count.get().min(MOST_AT_ONCE));
    thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    rows.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::Row;

    const DOCTOR: &str = r#"{"kernel": "6.1", "cause": "fine"}"#;
    const GOOD: &str = "running 3 tests\nnot run here: no valgrind\n\ntest result: ok. 3 passed; 0 failed; \
                        0 ignored; 0 measured; 0 filtered out; finished in 0.01s\n\n";
    const BAD: &str = "running 3 tests\n\nfailures:\n    broken\n\ntest result: FAILED. 2 passed; \
                       1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s\n\n";

    #[test]
    fn a_program_that_fails_or_prints_incomplete_output_is_an_error() {
        for (name, code, out, counts, errors) in [
            ("doctor", 0, DOCTOR, [0, 0, 0], ""),
            ("doctor", 0, "{", [0, 1, 0], "doctor: its output is incomplete"),
            ("live", 0, GOOD, [3, 0, 1], ""),
            ("live", 101, BAD, [2, 1, 0], "live: status 101\n    failures:\n        broken"),
            ("live", 139, "running 3 tests\n", [0, 1, 0], "live: status 139\n    running 3 tests"),
            ("live", 0, "running 3 tests\n", [0, 1, 0], "live: its output is incomplete"),
        ] {
            let mut row = Row::default();
            row.add(name, code, out);
            assert_eq!([row.passed, row.failed(), row.not_run], counts);
            assert!(row.errors.join("; ").starts_with(errors), "{:?}", row.errors);
        }
    }
}
