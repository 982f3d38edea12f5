//! `cargo xtask matrix`: runs the doctor and all tests on every machine of the table.

mod row;
mod table;

use std::fs::File;
use std::io::Write as _;
use std::process::{ExitCode, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::{Context as _, Result};
use fs_err as fs;
use serde_json::json;

use crate::programs::{Program, programs};
use crate::runner::{self, NOT_FETCHED, NotFetched};
use crate::workspace::{self, step};
use row::Row;
pub(crate) use table::quoted;

/// QEMU's user mode, which runs the programs of an architecture for which there is no kernel.
const EMULATOR: &str = "qemu-10";

/// Each guest has half a gigabyte of memory.
const MOST_AT_ONCE: usize = 8;

/// The seconds that a program may run, on a busy machine.
const LIMIT: &str = "600";

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
fn run_on(machine: &str) -> Row {
    let mut row = Row {
        machine: machine.to_owned(),
        ..Row::default()
    };
    if let Err(error) = fill(&mut row, machine) {
        if error.is::<NotFetched>() {
            step(&format!("{machine} did not run: {error:#}"));
            row.is_fetched = false;
            return row;
        }
        row.errors.push(format!("{error:#}"));
    }
    let cause = row.doctor["cause"].as_str().unwrap_or("no doctor");
    step(&format!(
        "{machine:<26} {} passed, {} failed, {} not run; {cause}",
        row.passed,
        row.failed(),
        row.not_run
    ));
    row
}

/// Builds the programs, runs them, and adds what they print.
fn fill(row: &mut Row, machine: &str) -> Result<()> {
    let turn = lock(&BUILDING);
    let programs = programs(machine)?;
    drop(turn);
    let directory = workspace::target().join("matrix");
    fs::create_dir_all(&directory)?;
    let out = directory.join(format!("{machine}.out"));
    let err = directory.join(format!("{machine}.err"));
    let mut command = runner::command("run-all")?;
    runner::set_environment(&mut command, machine);
    command
        .arg(machine)
        .current_dir(workspace::root())
        .env("CARGO_MANIFEST_DIR", workspace::root())
        .env("VDSO_TIME_GUEST_TIMEOUT", LIMIT)
        .stdin(Stdio::piped())
        .stdout(File::create(&out)?)
        .stderr(File::create(&err)?);
    let mut child = command.spawn()?;
    let mut list = child.stdin.take().context("standard input is a pipe")?;
    for Program {
        path, arguments, ..
    } in &programs
    {
        let mut words = vec![path];
        words.extend(arguments);
        // If the runner has ended early, its status says why, and not this error.
        let _ = writeln!(list, "{}", json!(words));
    }
    drop(list);
    let status = child.wait()?;
    let output = fs::read(out)?;
    row.add_all(&programs, &String::from_utf8_lossy(&output));
    runner::check(&command, status).with_context(|| fs::read_to_string(err).unwrap_or_default())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the emulators of the architectures for which no machine could be fetched.
fn stand_ins(rows: &[Row]) -> Vec<String> {
    let mut names = Vec::new();
    for row in rows {
        let has_run = rows
            .iter()
            .any(|other| other.arch() == row.arch() && other.is_fetched);
        let name = format!("{}@{EMULATOR}", row.arch());
        let was_tried = rows.iter().any(|other| other.machine == name);
        if !has_run && !was_tried && !names.contains(&name) {
            names.push(name);
        }
    }
    names.sort_unstable();
    names
}

pub(crate) fn run(write: bool, named: &[String]) -> Result<ExitCode> {
    let machines = if named.is_empty() {
        names().map(str::to_owned).collect()
    } else {
        named.to_vec()
    };
    let mut rows = run_all(&machines);
    rows.extend(run_all(&stand_ins(&rows)));
    let all = rows.len();
    rows.retain(|row| row.is_fetched);
    table::show(&rows, write)?;
    let mut has_failed = false;
    for row in &rows {
        if row.failed() > 0 {
            has_failed = true;
            let machine = &row.machine;
            println!("\nfailed on {machine} (output: target/matrix/{machine}.out):");
            println!("- {}", row.errors.join("\n- "));
        }
    }
    if has_failed {
        return Ok(ExitCode::FAILURE);
    }
    if rows.len() < all {
        return Ok(ExitCode::from(NOT_FETCHED));
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs as many machines at a time as there are processors: each keeps one busy.
fn run_all(machines: &[String]) -> Vec<Row> {
    let queue = Mutex::new(machines.iter());
    let rows = Mutex::new(Vec::new());
    let next = || lock(&queue).next();
    let work = || {
        while let Some(machine) = next() {
            let row = run_on(machine);
            lock(&rows).push(row);
        }
    };
    let processors = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..processors.min(MOST_AT_ONCE) {
            scope.spawn(work);
        }
    });
    rows.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::{Row, names, stand_ins};

    #[test]
    fn each_machine_is_listed_once() {
        let all: Vec<&str> = names().collect();
        for (at, name) in all.iter().enumerate() {
            assert!(!all[..at].contains(name), "{name} is listed twice");
        }
    }

    #[test]
    fn an_architecture_that_has_not_run_runs_in_the_emulator() {
        let row = |machine: &str, is_fetched: bool| Row {
            machine: machine.into(),
            is_fetched,
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
        assert_eq!(stand_ins(&rows), ["riscv64@qemu-10"]);
    }
}
