//! vdso-time compared with other ways to read a clock: one command builds all, measures all, and says
//! which claims hold.

mod deviation;
mod foreign;
mod programs;
mod rows;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use foreign::Foreign;
use rows::{CALLS, COARSE, COUNTER, MONOTONIC, TRACEABLE};
use vdso_time_benches::calls::{self, SYSCALL};
use vdso_time_benches::harness::bars::{self, Bar, both, isolated};
use vdso_time_benches::harness::command::{self, Arguments, run};
use vdso_time_benches::harness::document::{Report, Table};
use vdso_time_benches::harness::instructions::{self, Counts, STEP};
use vdso_time_benches::harness::plot::Chart;
use vdso_time_benches::harness::samples::{self, DIRECT, OURS, Samples};
use vdso_time_benches::harness::{Row, Spacing};

const BARS: &[Bar] = &[
    isolated("time()", "glibc static", 0.70),
    isolated("time()", "musl", 0.10),
    both(MONOTONIC, "musl", 0.99),
    both(MONOTONIC, "rustix", 1.01),
    both(MONOTONIC, "Go time.Now", 0.50),
    isolated(COARSE, "coarsetime", 0.75),
    both("clock_getres(MONOTONIC)", "rustix", 0.05),
    isolated(COUNTER, "quanta Clock::now", 0.95),
    isolated(COUNTER, "quanta Instant::now", 0.85),
    isolated(COUNTER, "minstant in ns", 0.75),
    isolated(programs::FIRST, "rustix", 1.10),
];

/// The contenders of the calls, in the order of the columns.
const CALLERS: [&str; 13] = [
    OURS,
    TRACEABLE,
    "libc",
    "glibc static",
    "musl",
    "std",
    "rustix",
    "clocksource",
    "coarsetime",
    "Go time.Now",
    "Go time.Since",
    "Go nanotime",
    SYSCALL,
];

fn child(asked: &[String]) -> Result<(), String> {
    let rows = rows::rows();
    calls::settle();
    match asked {
        [what, name] if what == STEP => {
            rows.iter().filter(|row| row.name == *name).for_each(instructions::child);
            Ok(())
        }
        _ => samples::print(&rows, asked),
    }
}

/// Creates the folder for the programs.
fn folder() -> Result<PathBuf, String> {
    let target = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"));
    let folder = target.join("vdso-time-peers");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

fn parent(arguments: &Arguments) -> Result<Report, String> {
    eprintln!("building the programs");
    let (foreign, notes): (Vec<_>, Vec<_>) = foreign::build(&folder()?).into_iter().partition(Result::is_ok);
    let foreign: Vec<Foreign> = foreign.into_iter().flatten().collect();
    let mut report =
        Report { notes: notes.into_iter().filter_map(Result::err).collect(), ..Report::default() };
    let programs = programs::build(&folder()?)?;
    eprintln!("measuring");
    let rows: Vec<Row> = rows::rows().into_iter().filter(|row| arguments.wants(&row.name)).collect();
    let counts = Counts::collect(&rows).unwrap_or_else(|why| {
        report.notes.push(why);
        Counts::default()
    });
    let offsets = foreign::offsets();
    let one = |samples: &mut Samples, asked: &[&str]| {
        samples.add_child(asked)?;
        foreign.iter().try_for_each(|it| {
            let (rounds, names) = asked.split_first().ok_or("the number of rounds is missing")?;
            samples.add_scaled(&run(Command::new(&it.program).args([rounds, &offsets.as_str()]).args(names))?)
        })
    };
    let names: Vec<String> = rows.iter().map(|row| row.name.clone()).collect();
    let is_noisy = |samples: &Samples, row: &str| bars::is_noisy(BARS, samples, row);
    let mut samples = Samples::collect(arguments, &names, one, is_noisy)?;
    let starts = programs::start(&programs, arguments.effort.choose(1, 15, 101))?;
    let programs = programs::table(&programs, &starts);
    samples.append(starts);
    calls::settle();
    let seconds = Duration::from_secs(arguments.effort.choose(1, 2, 30));
    let deviation = deviation::measure(seconds);
    let (bars, missed) = bars::table("peers-bars", BARS, &samples);
    report.missed = missed;
    report.notes.push(versions(&foreign));
    report.charts = vec![chart(&samples)];
    report.tables = vec![
        summary(&samples, &deviation),
        calls_table(&samples),
        clocks_table(&rows, &samples, &counts),
        deviation,
        programs,
        bars,
    ];
    Ok(report)
}

/// The short table of README.md.
fn summary(samples: &Samples, deviation: &Table) -> Table {
    const HEAD: [&str; 6] = ["", OURS, "std", "musl", "rustix", "quanta"];
    const ROWS: [(&str, &str, f64); 6] = [
        ("time()", "`time()`, ns", 1.0),
        (MONOTONIC, "monotonic, ns", 1.0),
        (COARSE, "monotonic, coarse, ns", 1.0),
        ("clock_getres(MONOTONIC)", "resolution of a clock, ns", 1.0),
        (COUNTER, "the CPU's counter, ns", 1.0),
        (programs::FIRST, "first call of a process, us", 1e3),
    ];
    let mut table = Table::new("peers-summary", &HEAD);
    for (row, name, unit) in ROWS {
        let nanos = |contender: &&str| {
            let contender =
                if (row, *contender) == (COUNTER, "quanta") { "quanta Instant::now" } else { contender };
            samples.nanos(row, Spacing::Isolated, contender)
        };
        let cells =
            HEAD[1..].iter().map(|it| nanos(it).map_or_else(String::new, |ns| format!("{:.1}", ns / unit)));
        table.rows.push([name.to_string()].into_iter().chain(cells).collect());
    }
    let largest = |name: &str| {
        let row = deviation.rows.iter().find(|row| row[0] == name);
        row.map_or_else(String::new, |row| row[3].clone())
    };
    let cells = HEAD[1..].iter().map(|name| largest(name));
    table.rows.insert(5, ["the counter's largest error, ns".to_string()].into_iter().chain(cells).collect());
    table
}

/// Each call as a multiple of `direct`: isolated, back to back.
fn calls_table(samples: &Samples) -> Table {
    let mut table = Table::new("peers-calls", &[&["/ direct"], CALLERS.as_slice()].concat());
    for row in CALLS.into_iter().filter(|row| samples.of(row, Spacing::Isolated, DIRECT).is_some()) {
        let cells = CALLERS.map(|caller| samples.cell(row, [caller, DIRECT]));
        table.rows.push([vec![row.to_string()], cells.to_vec()].concat());
    }
    table
}

/// The counter clocks.
fn clocks_table(rows: &[Row], samples: &Samples, counts: &Counts) -> Table {
    let mut table = Table::new("peers-clocks", &[COUNTER, "ns", "/ direct", "instructions"]);
    let row = rows.iter().filter(|row| row.name == COUNTER).flat_map(|row| &row.contenders);
    for name in row.map(|contender| contender.name).filter(|name| *name != SYSCALL) {
        let nanos = |spacing| Some(format!("{:.1}", samples.nanos(COUNTER, spacing, name)?));
        let nanos: Vec<String> = Spacing::ALL.into_iter().filter_map(nanos).collect();
        let ratio = samples.cell(COUNTER, [name, DIRECT]);
        table.rows.push(vec![name.into(), nanos.join(", "), ratio, counts.more(COUNTER, name)]);
    }
    table
}

/// The releases that were compared.
fn versions(foreign: &[Foreign]) -> String {
    let lock = include_str!("../Cargo.lock");
    let version = |name: &str| {
        let (_, rest) = lock.split_once(&format!("name = \"{name}\"\nversion = \""))?;
        Some(format!("{name} {}", rest.split_once('"')?.0))
    };
    let names = ["clocksource", "coarsetime", "fastant", "libc", "minstant", "quanta", "rustix"];
    let crates = names.into_iter().filter_map(version);
    crates.chain(foreign.iter().map(|it| it.version.clone())).collect::<Vec<_>>().join("; ")
}

fn chart(samples: &Samples) -> Chart {
    let group = |row: &str| {
        let names = [&[DIRECT], CALLERS.as_slice()].concat();
        let nanos = |name: &&str| Some(((*name).to_string(), samples.nanos(row, Spacing::Isolated, name)?));
        (row.to_string(), names.iter().filter_map(nanos).collect())
    };
    let groups = ["time()", MONOTONIC, COARSE, "clock_getres(MONOTONIC)", "getcpu()"].map(group);
    Chart { file: "peers.svg", title: "An isolated call", groups: groups.into() }
}

fn main() -> ExitCode {
    command::main(&["--bench"], child, parent)
}
