//! vdso-time compared with other ways to read a clock: one command builds all, measures all, and
//! says which claims hold.

mod accuracy;
mod discovery;
mod first;
mod foreign;
mod rows;
mod scale;
mod worst;

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use rows::{CALLS, COARSE, COUNTER, ELAPSED, MONOTONIC};
use rows::{OUR_QUANTA, QUANTA_CLOCK, QUANTA_INSTANT};
use vdso_time_benches::calls::{self, LINE, SYSCALL, TICKS};
use vdso_time_benches::harness::command::{Arguments, run};
use vdso_time_benches::harness::limits::{self, Limit, both, isolated};
use vdso_time_benches::harness::report::Report;
use vdso_time_benches::harness::samples::{self, DIRECT, OURS, Samples};
use vdso_time_benches::harness::{self, Row};
use vdso_time_benches::pages::Table;

const LIMITS: &[Limit] = &[
    both("time()", DIRECT, 1.03),
    both(MONOTONIC, DIRECT, 1.03),
    isolated(COARSE, DIRECT, 1.08),
    both("clock_getres(MONOTONIC)", "rustix", 0.05),
    both(COUNTER, LINE, 1.03),
    both(ELAPSED, LINE, 1.03),
    isolated(first::NEW, first::CHECKED, 1.03),
    isolated(first::NEW, "rustix", 1.00).of(first::ALL),
    isolated(first::FORKED, "rustix", 1.20),
    isolated(first::WARM, "rustix", 1.05),
    isolated(scale::TWO, "std", 1.03),
    isolated(scale::MANY, "std", 1.03),
    isolated(discovery::ONE, discovery::SELFTESTS, 1.50),
    isolated(discovery::ALL, discovery::SELFTESTS, 1.00),
    linear(worst::NAMES),
    linear(worst::VERSIONS),
    linear(worst::HIDDEN),
    linear(worst::TABLES),
];

/// An image of twice the size takes at most three times as long.
const fn linear(image: &'static str) -> Limit {
    let limit = isolated(image, worst::HALF, 3.00);
    limit.of(worst::WHOLE)
}

/// The contenders of the calls, in the order of the columns: the C libraries, and Rust's.
const LIBCS: [&str; 5] = [OURS, "libc", "glibc static", "musl", SYSCALL];
const CRATES: [&str; 4] = [OURS, "std", "rustix", "coarsetime"];
const CLOCKS: [&str; 5] = [OURS, OUR_QUANTA, TICKS, QUANTA_CLOCK, QUANTA_INSTANT];

fn child(asked: &[String]) -> Result<(), String> {
    let words: Vec<&str> = asked.iter().map(String::as_str).collect();
    match *words {
        [what, row, milliseconds] if what == scale::COMMAND => {
            let milliseconds = number(milliseconds)?;
            scale::print(row, milliseconds)
        }
        [what, seconds] if what == accuracy::ROW => {
            let seconds = number(seconds)?;
            accuracy::print(seconds as u64);
            Ok(())
        }
        [what] if what == worst::COMMAND => {
            worst::print();
            Ok(())
        }
        _ => {
            let rows = all_rows();
            calls::settle();
            samples::print(&rows, asked)
        }
    }
}

fn number(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) => Ok(number),
        Err(error) => Err(format!("{text}: {error}")),
    }
}

fn all_rows() -> Vec<Row> {
    let mut rows = rows::rows();
    rows.extend(discovery::rows());
    rows
}

fn parent(arguments: &Arguments) -> Result<Report, String> {
    let mut report = Report::default();
    eprintln!("building the programs");
    let foreign = foreign::build()?;
    report.notes.extend(foreign.notes);
    eprintln!("measuring");
    let mut samples = measured_calls(arguments, &foreign.programs)?;
    add_others(&mut samples, arguments)?;
    let (limits, missed) = limits::table("peers-limits", LIMITS, &samples, arguments);
    report.missed = missed;
    if arguments.wants(COUNTER) {
        calls::settle();
        report.tables.push(summary(&samples));
    }
    report.tables.extend(call_tables(&samples));
    report.tables.extend([
        first::table(&samples),
        scale::table(&samples),
        accuracy::table(&samples),
        discovery::table(&samples),
        worst::table(&samples),
        limits,
    ]);
    Ok(report)
}

/// Measures the rows that are calls: in this program, and in those of other C libraries.
fn measured_calls(arguments: &Arguments, foreign: &[PathBuf]) -> Result<Samples, String> {
    let mut names = Vec::new();
    for row in all_rows() {
        if arguments.wants(&row.name) {
            names.push(row.name);
        }
    }
    let one = |samples: &mut Samples, asked: &[&str]| {
        samples.add_child(asked)?;
        for program in foreign {
            let mut command = Command::new(program);
            command.args(asked);
            let text = run(&mut command)?;
            samples.add(&text)?;
        }
        Ok(())
    };
    let is_noisy = |samples: &Samples, row: &str| limits::is_noisy(LIMITS, samples, row);
    Samples::collect(arguments, &names, one, is_noisy)
}

/// Measures the other rows, each in processes of its own.
fn add_others(samples: &mut Samples, arguments: &Arguments) -> Result<(), String> {
    let effort = arguments.effort;
    if wants_any(arguments, &first::ROWS) {
        let times = effort.choose(1, 5, 25);
        first::add(samples, times)?;
    }
    for row in scale::ROWS {
        if !arguments.wants(row) {
            continue;
        }
        let milliseconds = effort.choose("1", "100", "500");
        for _ in 0..effort.choose(1, 3, 5) {
            samples.add_child(&[scale::COMMAND, row, milliseconds])?;
        }
    }
    if wants_any(arguments, &worst::ROWS) {
        samples.add_child(&[worst::COMMAND])?;
    }
    if arguments.wants(accuracy::ROW) {
        let seconds = effort.choose("1", "2", "10");
        samples.add_child(&[accuracy::ROW, seconds])?;
    }
    Ok(())
}

fn wants_any(arguments: &Arguments, rows: &[&str]) -> bool {
    rows.iter().any(|row| arguments.wants(row))
}

/// Returns the tables of the calls, as ratios to the direct call.
fn call_tables(samples: &Samples) -> [Table; 3] {
    const UNIT: &str = "/ direct";
    let counters = [COUNTER, ELAPSED];
    let ratio = |row: &str, contender| samples.cell(row, [contender, DIRECT]);
    [
        Table::of("peers-libcs", UNIT, CALLS, &LIBCS, ratio),
        Table::of("peers-crates", UNIT, CALLS, &CRATES, ratio),
        Table::of("peers-clocks", UNIT, counters, &CLOCKS, ratio),
    ]
}

/// Returns the short table of README.md.
fn summary(samples: &Samples) -> Table {
    const HEAD: [&str; 8] = [
        "ns", OURS, "libc", "std", "musl", "rustix", "quanta", SYSCALL,
    ];
    const ROWS: [(&str, &str); 5] = [
        ("time()", "`time()`"),
        (MONOTONIC, "monotonic"),
        (COARSE, "monotonic, coarse"),
        ("clock_getres(MONOTONIC)", "resolution of a clock"),
        (COUNTER, "the CPU's counter"),
    ];
    let mut table = Table::new("peers-summary", HEAD);
    for (row, name) in ROWS {
        let mut cells = Vec::new();
        for contender in &HEAD[1..] {
            let cell = match (row, *contender) {
                (COUNTER, "quanta") => samples.isolated(row, QUANTA_CLOCK, 1),
                // The row is compared with the system call of another clock.
                (COUNTER, SYSCALL) => None,
                (_, contender) => samples.isolated(row, contender, 1),
            };
            cells.push(cell);
        }
        table.add(name, cells);
    }
    table
}

fn main() -> ExitCode {
    harness::main(child, parent)
}
