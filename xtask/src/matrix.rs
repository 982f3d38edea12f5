//! `cargo xtask matrix`: runs the doctor and all tests on every machine of the table.

use std::fs::File;
use std::io::Read as _;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use fs_err as fs;
use serde_json::Value;

use crate::machine::Machine;
use crate::matrix_page::{page, table};
use crate::matrix_table::{QUICK, TESTS, machines};
use crate::programs::{Program, executables, tests};
use crate::report::{Tests, read_doctor};
use crate::runner::{Run, end_groups_at_signals};
use crate::setup::Setup;
use crate::{step, workspace};

const PAGE: &str = "docs/MATRIX.md";

/// Each guest has half a gigabyte of memory.
const MOST_AT_ONCE: usize = 8;

/// How long a program may run, on a busy machine.
const LIMIT: Duration = Duration::from_secs(600);

/// The doctor's program.
const DOCTOR: &str = "vdso-doctor";

/// cargo builds for one machine at a time.
static BUILDING: Mutex<()> = Mutex::new(());

/// What came of a machine.
#[derive(Default)]
pub(crate) struct Row {
    pub(crate) machine: String,
    pub(crate) doctor: Value,
    pub(crate) tests: Tests,
    /// Programs that failed or did not run to their end.
    pub(crate) errors: Vec<String>,
    pub(crate) seconds: u64,
}

impl Row {
    /// A program that fails without naming a test counts as one.
    pub(crate) fn failed(&self) -> usize {
        self.tests.failed.len().max(self.errors.len())
    }

    /// Runs the programs on the machine.
    fn fill(&mut self, machine: &Machine) -> Result<()> {
        let turn = BUILDING.lock();
        let (setup, programs) = programs(machine)?;
        drop(turn);
        let start = Instant::now();
        let folder = workspace::target().join("matrix");
        fs::create_dir_all(&folder)?;
        let [out, err] = ["out", "err"].map(|name| folder.join(format!("{machine}.{name}")));
        let mut plan = setup.plan_for(&programs);
        // Emulated, a backtrace takes long.
        plan.environment.push(("RUST_BACKTRACE".into(), "0".into()));
        let files = (File::create(&out)?, File::create(err)?);
        let run = Run { limit: LIMIT, out: files.0, err: files.1, ..Run::new(&plan, &programs)? };
        let mut output = File::open(out)?;
        let mut rest = programs.iter();
        let result = run.run(|_, status| {
            let mut text = Vec::new();
            let read = output.read_to_end(&mut text);
            self.errors.extend(read.err().map(|error| error.to_string()));
            let name = rest.next().map_or("", Program::name);
            self.add(name, status.code, &String::from_utf8_lossy(&text));
        });
        self.seconds = start.elapsed().as_secs();
        self.errors.extend(rest.map(|program| format!("{}: did not run to its end", program.name())));
        result
    }

    /// Adds what came of a program.
    fn add(&mut self, name: &str, code: u8, out: &str) {
        let is_whole = if name == DOCTOR {
            self.doctor = read_doctor(out).unwrap_or_default();
            !self.doctor.is_null()
        } else {
            Tests::read(out).map(|tests| self.tests.add(tests)).is_some()
        };
        if code != 0 {
            self.errors.push(format!("{name}: status {code}"));
        } else if !is_whole {
            self.errors.push(format!("{name}: its output is incomplete"));
        }
    }
}

pub(crate) fn run(quick: bool, write: bool, named: Vec<Machine>) -> Result<ExitCode> {
    let is_wanted = |machine: &Machine| !quick || QUICK.contains(&&*machine.to_string());
    let machines = if named.is_empty() { machines(is_wanted) } else { named };
    end_groups_at_signals()?;
    let rows = run_all(&machines);
    println!("{}", table(&rows, ""));
    let failed: Vec<&Row> = rows.iter().filter(|row| row.failed() > 0).collect();
    for row in &failed {
        println!("\nfailed on {}:", row.machine);
        for what in row.tests.failed.iter().chain(&row.errors) {
            println!("- {what}");
        }
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
    let next = AtomicUsize::new(0);
    let rows = Mutex::new(Vec::new());
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(machine) = machines.get(index) else { break };
            let mut row = Row { machine: machine.to_string(), ..Row::default() };
            if let Err(error) = row.fill(machine) {
                row.errors.push(format!("{error:#}"));
            }
            let Tests { passed, not_run, .. } = row.tests;
            let (failed, cause) = (row.failed(), row.doctor["cause"].as_str().unwrap_or("no doctor"));
            let counts = format!("{passed} passed, {failed} failed, {not_run} not run");
            step(&format!("{:<26} {counts}; {cause}; {} s", row.machine, row.seconds));
            if let Ok(mut rows) = rows.lock() {
                rows.push((index, row));
            }
        }
    };
    let workers = thread::available_parallelism().map_or(1, |count| count.get().min(MOST_AT_ONCE));
    thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    let mut rows = rows.into_inner().unwrap_or_default();
    rows.sort_by_key(|(index, _)| *index);
    rows.into_iter().map(|(_, row)| row).collect()
}

/// The programs for the machine: the doctor first, because a test may change the clock source.
fn programs(machine: &Machine) -> Result<(Setup, Vec<Program>)> {
    let words = |text: &str| text.split(' ').map(String::from).collect::<Vec<_>>();
    let setup = Setup::new(machine)?;
    let sh = workspace::shell()?;
    let build = words("build --quiet --release --package vdso-doctor");
    let mut doctor =
        executables(setup.cargo(&sh).args(build), false)?.pop().context("cargo built no doctor")?;
    doctor.arguments.push("--json".into());
    // All programs run in one folder, which is that of the tests.
    doctor.folder = workspace::root();
    let tests = tests(machine, &setup, &words(&format!("--quiet {TESTS}")), &words("--show-output"))?;
    Ok((setup, [vec![doctor], tests].concat()))
}

#[cfg(test)]
mod tests {
    use super::Row;

    const DOCTOR: &str = r#"{"format": 1, "kernel": "6.1", "cause": "fine"}"#;
    const GOOD: &str = "\nrunning 3 tests\n\ntest result: ok. 3 passed; 0 failed; 0 ignored; \
                        0 measured; 0 filtered out; finished in 0.01s\n\n";
    const BAD: &str = "\nrunning 3 tests\n\nfailures:\n    broken\n\ntest result: FAILED. 2 passed; \
                       1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s\n\n";

    #[test]
    fn a_program_that_fails_or_prints_incomplete_output_is_an_error() {
        for (name, code, out, passed, errors) in [
            ("vdso-doctor", 0, DOCTOR, 0, ""),
            ("vdso-doctor", 0, "{", 0, "vdso-doctor: its output is incomplete"),
            ("live", 0, GOOD, 3, ""),
            ("live", 101, BAD, 2, "live: status 101"),
            ("live", 139, "\nrunning 3 tests\n", 0, "live: status 139"),
            ("live", 0, "\nrunning 3 tests\n", 0, "live: its output is incomplete"),
        ] {
            let mut row = Row::default();
            row.add(name, code, out);
            assert_eq!((row.tests.passed, row.errors.join("; ")), (passed, errors.into()));
        }
    }
}
