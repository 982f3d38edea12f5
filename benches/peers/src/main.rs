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

use rows::{CALLS, COARSE, COUNTER, ELAPSED, MONOTONIC, OUR_QUANTA, QUANTA};
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
    isolated(first::ROWS[0], first::CHECKED, 1.03),
    isolated(first::ROWS[0], "rustix", 1.00).of(first::ALL),
    isolated(first::ROWS[1], "rustix", 1.20),
    isolated(first::ROWS[2], "rustix", 1.05),
    isolated(scale::ROWS[1], "std", 1.03),
    isolated(scale::ROWS[3], "std", 1.03),
    isolated(discovery::ROWS[0], discovery::SELFTESTS, 1.50),
    isolated(discovery::ROWS[1], discovery::SELFTESTS, 1.00),
    isolated(worst::ROWS[0], worst::SIZES[0], 3.00).of(worst::SIZES[1]),
    isolated(worst::ROWS[1], worst::SIZES[0], 3.00).of(worst::SIZES[1]),
    isolated(worst::ROWS[2], worst::SIZES[0], 3.00).of(worst::SIZES[1]),
    isolated(worst::ROWS[3], worst::SIZES[0], 3.00).of(worst::SIZES[1]),
];

/// The contenders of the calls, in the order of the columns: the C libraries, and Rust's.
const LIBCS: [&str; 5] = [OURS, "libc", "glibc static", "musl", SYSCALL];
const CRATES: [&str; 4] = [OURS, "std", "rustix", "coarsetime"];
const CLOCKS: [&str; 5] = [OURS, OUR_QUANTA, TICKS, QUANTA[0], QUANTA[1]];

fn child(asked: &[String]) -> Result<(), String> {
    let words: Vec<&str> = asked.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse().map_err(|error| format!("{text}: {error}"));
    match *words {
        [what, row, milliseconds] if what == scale::ROWS[0] => {
            scale::print(row, number(milliseconds)?)
        }
        [what, seconds] if what == accuracy::ROW => {
            accuracy::print(number(seconds)? as u64);
            Ok(())
        }
        [what] if what == worst::ROWS[0] => {
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

fn all_rows() -> Vec<Row> {
    rows::rows().into_iter().chain(discovery::rows()).collect()
}

fn parent(arguments: &Arguments) -> Result<Report, String> {
    let mut report = Report::default();
    eprintln!("building the programs");
    let (foreign, notes): (Vec<_>, Vec<_>) = foreign::build()?.into_iter().partition(Result::is_ok);
    let foreign: Vec<PathBuf> = foreign.into_iter().flatten().collect();
    report
        .notes
        .extend(notes.into_iter().filter_map(Result::err));
    eprintln!("measuring");
    let rows: Vec<Row> = all_rows()
        .into_iter()
        .filter(|row| arguments.wants(&row.name))
        .collect();
    let one = |samples: &mut Samples, asked: &[&str]| {
        samples.add_child(asked)?;
        foreign
            .iter()
            .try_for_each(|program| samples.add(&run(Command::new(program).args(asked))?))
    };
    let names: Vec<String> = rows.iter().map(|row| row.name.clone()).collect();
    let is_noisy = |samples: &Samples, row: &str| limits::is_noisy(LIMITS, samples, row);
    let mut samples = Samples::collect(arguments, &names, one, is_noisy)?;
    if first::ROWS.iter().any(|row| arguments.wants(row)) {
        first::add(&mut samples, arguments.effort.choose(1, 5, 25))?;
    }
    for row in scale::ROWS.iter().filter(|row| arguments.wants(row)) {
        for _ in 0..arguments.effort.choose(1, 3, 5) {
            samples.add_child(&[
                scale::ROWS[0],
                row,
                arguments.effort.choose("1", "100", "500"),
            ])?;
        }
    }
    if worst::ROWS.iter().any(|row| arguments.wants(row)) {
        samples.add_child(&[worst::ROWS[0]])?;
    }
    if arguments.wants(accuracy::ROW) {
        samples.add_child(&[accuracy::ROW, arguments.effort.choose("1", "2", "10")])?;
    }
    let (limits, missed) = limits::table("peers-limits", LIMITS, &samples, arguments);
    report.missed = missed;
    if arguments.wants(COUNTER) {
        calls::settle();
        report.tables.push(summary(&samples));
    }
    let ratio = |row: &str, contender| samples.cell(row, [contender, DIRECT]);
    report.tables.extend([
        Table::of("peers-libcs", "/ direct", CALLS, &LIBCS, ratio),
        Table::of("peers-crates", "/ direct", CALLS, &CRATES, ratio),
        Table::of(
            "peers-clocks",
            "/ direct",
            [COUNTER, ELAPSED],
            &CLOCKS,
            ratio,
        ),
        first::table(&samples),
        scale::table(&samples),
        accuracy::table(&samples),
        discovery::table(&samples),
        worst::table(&samples),
        limits,
    ]);
    Ok(report)
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
        let cell = |contender: &&str| match (row, *contender) {
            (COUNTER, "quanta") => samples.isolated(row, QUANTA[0], 1),
            // The row is compared with the system call of another clock.
            (COUNTER, SYSCALL) => None,
            (_, contender) => samples.isolated(row, contender, 1),
        };
        table.add(name, HEAD[1..].iter().map(cell));
    }
    table
}

fn main() -> ExitCode {
    harness::main(child, parent)
}
