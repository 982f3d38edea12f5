//! `cargo xtask matrix`: runs the doctor and all tests on every machine of the table.

mod row;
mod table;

use std::fs::File;
use std::io::Read as _;
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Error, Result};
use fs_err as fs;
use vdso_time_kernel_runner::machine::{EMULATOR, Machine};
use vdso_time_kernel_runner::runner::Run;
use vdso_time_kernel_runner::{NOT_FETCHED, NotFetched, step};

use crate::programs::programs;
use crate::workspace;
use row::Row;
pub(crate) use table::quoted;

/// Each guest has half a gigabyte of memory.
const MOST_AT_ONCE: usize = 8;

/// How long a program may run, on a busy machine.
const LIMIT: Duration = Duration::from_secs(600);

/// cargo builds for one machine at a time.
static BUILDING: Mutex<()> = Mutex::new(());

/// Returns the names of all machines, in the order of the page.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let lines = include_str!("machines.txt").lines();
    lines
        .filter(|line| !line.starts_with('#'))
        .flat_map(str::split_whitespace)
}

/// Runs the programs on a machine.
fn run_on(machine: &Machine) -> Row {
    let mut row = Row {
        machine: machine.to_string(),
        ..Row::default()
    };
    if let Err(error) = fill(&mut row, machine) {
        let why = format!("{error:#}");
        if error.is::<NotFetched>() {
            step(&format!("{machine} did not run: {why}"));
            row.not_fetched = Some(why);
            return row;
        }
        row.errors.push(why);
    }
    let counts = format!(
        "{} passed, {} failed, {} not run",
        row.passed,
        row.failed(),
        row.not_run
    );
    let cause = row.doctor["cause"].as_str().unwrap_or("no doctor");
    step(&format!("{:<26} {counts}; {cause}", row.machine));
    row
}

fn fill(row: &mut Row, machine: &Machine) -> Result<()> {
    let turn = lock(&BUILDING);
    let setup = crate::machines::setup(machine)?;
    let programs = programs(machine, &setup)?;
    drop(turn);
    let folder = workspace::target().join("matrix");
    fs::create_dir_all(&folder)?;
    let [out, err] = ["out", "err"].map(|name| folder.join(format!("{machine}.{name}")));
    let mut plan = setup.plan;
    let folder = workspace::root();
    plan.environment
        .push(("CARGO_MANIFEST_DIR".into(), folder.display().to_string()));
    let path = out;
    let (out, err) = (File::create(&path)?, File::create(err)?);
    let mut output = File::open(path)?;
    Run {
        limit: LIMIT,
        folder,
        out,
        err,
        ..Run::new(&plan, &programs)?
    }
    .run(|program, code| {
        let mut text = Vec::new();
        row.errors.extend(
            output
                .read_to_end(&mut text)
                .err()
                .map(|error| error.to_string()),
        );
        row.add(&program.name, code, &String::from_utf8_lossy(&text));
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the emulators of the architectures for which no machine could be fetched.
fn stand_ins(rows: &[Row]) -> Vec<Machine> {
    let has_run = |arch| {
        rows.iter()
            .any(|row| row.arch() == arch && row.not_fetched.is_none())
    };
    let mut names: Vec<String> = rows
        .iter()
        .filter(|row| !has_run(row.arch()))
        .map(|row| format!("{}@{EMULATOR}", row.arch()))
        .filter(|name| rows.iter().all(|row| row.machine != *name))
        .collect();
    names.sort_unstable();
    names.dedup();
    names.iter().filter_map(|name| name.parse().ok()).collect()
}

pub(crate) fn run(write: bool, named: Vec<Machine>) -> Result<ExitCode> {
    let listed = names().map(|name| name.parse::<Machine>().map_err(Error::msg));
    let machines = if named.is_empty() {
        listed.collect::<Result<_>>()?
    } else {
        named
    };
    let mut rows = run_all(&machines);
    rows.extend(run_all(&stand_ins(&rows)));
    let all = rows.len();
    rows.retain(|row| row.not_fetched.is_none());
    table::show(&rows, write)?;
    let failed: Vec<&Row> = rows.iter().filter(|row| row.failed() > 0).collect();
    for Row {
        machine, errors, ..
    } in &failed
    {
        println!("\nfailed on {machine} (output: target/matrix/{machine}.out):");
        println!("- {}", errors.join("\n- "));
    }
    Ok(match (failed.is_empty(), rows.len() == all) {
        (false, _) => ExitCode::FAILURE,
        (true, false) => ExitCode::from(NOT_FETCHED),
        (true, true) => ExitCode::SUCCESS,
    })
}

/// Runs as many machines at a time as there are processors: each keeps one busy.
fn run_all(machines: &[Machine]) -> Vec<Row> {
    let queue = Mutex::new(machines.iter());
    let rows = Mutex::new(Vec::new());
    let next = || lock(&queue).next();
    let work = || {
        while let Some(machine) = next() {
            let row = run_on(machine);
            lock(&rows).push(row);
        }
    };
    let workers = thread::available_parallelism().map_or(1, |count| count.get().min(MOST_AT_ONCE));
    thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    rows.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::{Machine, Row, names, stand_ins};

    #[test]
    fn each_machine_is_listed_once_by_its_name() {
        let all: Vec<&str> = names().collect();
        for (at, name) in all.iter().enumerate() {
            let machine = name.parse::<Machine>().map(|machine| machine.to_string());
            assert_eq!(machine.as_deref(), Ok(*name));
            assert!(!all[..at].contains(name), "{name} is listed twice");
        }
    }

    #[test]
    fn an_architecture_that_has_not_run_runs_in_the_emulator() {
        let row = |machine: &str, is_fetched: bool| Row {
            machine: machine.into(),
            not_fetched: (!is_fetched).then(String::new),
            ..Row::default()
        };
        let rows = [
            row("riscv64@6.12", false),
            row("riscv64@7", false),
            row("armv7@qemu-10", true),
            row("armv7@6.12", false),
            row("s390x@qemu-10", false),
            row("aarch64@7", true),
        ];
        let names: Vec<String> = stand_ins(&rows).iter().map(ToString::to_string).collect();
        assert_eq!(names, ["riscv64@qemu-10"]);
    }
}
