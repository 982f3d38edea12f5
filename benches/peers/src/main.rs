//! vdso-time compared with other ways to read a clock: one command builds all, measures all, and says
//! which claims hold.

mod discovery;
mod first;
mod foreign;
mod rows;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use rows::{CALLS, COARSE, COUNTER, MONOTONIC};
use vdso_time_benches::calls::{self, SYSCALL, TICKS};
use vdso_time_benches::harness::bars::{self, Bar, above, both, isolated};
use vdso_time_benches::harness::command::{self, Arguments, run};
use vdso_time_benches::harness::document::{Report, Table};
use vdso_time_benches::harness::samples::{self, DIRECT, OURS, Samples};
use vdso_time_benches::harness::{Row, Spacing};
use vdso_time_peers::weather::{self, Weather};

const BARS: &[Bar] = &[
    above(DIRECT, "time()", "glibc static"),
    above(DIRECT, "time()", "musl"),
    above(DIRECT, MONOTONIC, "musl"),
    above(DIRECT, MONOTONIC, "rustix"),
    isolated(COARSE, "coarsetime", 0.75),
    both("clock_getres(MONOTONIC)", "rustix", 0.05),
    above(TICKS, COUNTER, "quanta Clock::now"),
    above(TICKS, COUNTER, "quanta Instant::now"),
    isolated(first::FIRST, "rustix", 1.00),
    isolated(discovery::ROWS[0], discovery::SELFTESTS, 1.00),
    isolated(discovery::ROWS[1], discovery::SELFTESTS, 1.00),
    isolated(discovery::COLD[0], discovery::SELFTESTS, 1.00),
    isolated(discovery::COLD[1], discovery::SELFTESTS, 1.00),
];

/// The contenders of the calls, in the order of the columns.
const CALLERS: [&str; 8] = [OURS, "libc", "glibc static", "musl", "std", "rustix", "coarsetime", SYSCALL];

fn child(asked: &[String]) -> Result<(), String> {
    match asked {
        [what, name] if what == first::FIRST => first::print(name),
        [what, times] if what == discovery::COLD[0] => {
            let times = times.parse().map_err(|error| format!("{times}: {error}"))?;
            discovery::print_cold(&parser()?, times);
        }
        _ => {
            let rows = all_rows()?;
            calls::settle();
            samples::print(&rows, asked)?;
        }
    }
    Ok(())
}

/// Creates the folder for the programs.
fn folder() -> Result<PathBuf, String> {
    let target = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"));
    let folder = target.join("vdso-time-peers");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

/// Returns the place of the selftests' parser.
fn parser() -> Result<PathBuf, String> {
    Ok(folder()?.join("parse_vdso.so"))
}

fn all_rows() -> Result<Vec<Row>, String> {
    Ok(rows::rows().into_iter().chain(discovery::rows(&parser()?)).collect())
}

fn parent(arguments: &Arguments) -> Result<Report, String> {
    eprintln!("building the programs");
    let (foreign, notes): (Vec<_>, Vec<_>) = foreign::build(&folder()?).into_iter().partition(Result::is_ok);
    let foreign: Vec<PathBuf> = foreign.into_iter().flatten().collect();
    let mut report =
        Report { notes: notes.into_iter().filter_map(Result::err).collect(), ..Report::default() };
    report.notes.extend(discovery::build(&parser()?).err());
    eprintln!("measuring");
    let rows: Vec<Row> = all_rows()?.into_iter().filter(|row| arguments.wants(&row.name)).collect();
    let offsets = foreign::offsets();
    let one = |samples: &mut Samples, asked: &[&str]| {
        samples.add_child(asked)?;
        if discovery::COLD.iter().any(|row| arguments.wants(row)) {
            samples.add_child(&[discovery::COLD[0], arguments.effort.choose("1", "20", "100")])?;
        }
        foreign.iter().try_for_each(|program| {
            let (rounds, names) = asked.split_first().ok_or("the number of rounds is missing")?;
            samples.add_scaled(&run(Command::new(program).args([rounds, &offsets.as_str()]).args(names))?)
        })
    };
    let names: Vec<String> = rows.iter().map(|row| row.name.clone()).collect();
    let is_noisy = |samples: &Samples, row: &str| bars::is_noisy(BARS, samples, row);
    let mut samples = Samples::collect(arguments, &names, one, is_noisy)?;
    if arguments.wants(first::FIRST) {
        first::add(&mut samples, arguments.effort.choose(1, 15, 101))?;
    }
    calls::settle();
    let seconds = Duration::from_secs(arguments.effort.choose(1, 2, 30));
    let deviation = weather::measure(Weather::Calm, seconds)?;
    let (bars, missed) = bars::table("peers-bars", BARS, &samples, arguments);
    report.missed = missed;
    report.tables = vec![
        summary(&samples, &deviation),
        calls_table(&samples),
        clocks_table(&rows, &samples),
        first::table(&samples),
        discovery::table(&samples),
        bars,
    ];
    Ok(report)
}

/// The short table of README.md.
fn summary(samples: &Samples, deviation: &[Vec<String>]) -> Table {
    const HEAD: [&str; 7] = ["", OURS, "std", "musl", "rustix", "quanta", SYSCALL];
    const ROWS: [(&str, &str, f64); 6] = [
        ("time()", "`time()`, ns", 1.0),
        (MONOTONIC, "monotonic, ns", 1.0),
        (COARSE, "monotonic, coarse, ns", 1.0),
        ("clock_getres(MONOTONIC)", "resolution of a clock, ns", 1.0),
        (COUNTER, "the CPU's counter, ns", 1.0),
        (first::FIRST, "first call of a process, us", 1e3),
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
    let largest = |name: &&str| {
        let row = deviation.iter().find(|row| row[0] == **name);
        row.map_or_else(String::new, |row| row[3].clone())
    };
    let cells = HEAD[1..].iter().map(largest);
    table.rows.insert(5, ["the counter's largest error".to_string()].into_iter().chain(cells).collect());
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
fn clocks_table(rows: &[Row], samples: &Samples) -> Table {
    let mut table = Table::new("peers-clocks", &[COUNTER, "ns", "/ direct"]);
    let row = rows.iter().filter(|row| row.name == COUNTER).flat_map(|row| &row.contenders);
    for name in row.map(|contender| contender.name).filter(|name| *name != SYSCALL) {
        let nanos = |spacing| Some(format!("{:.1}", samples.nanos(COUNTER, spacing, name)?));
        let nanos: Vec<String> = Spacing::ALL.into_iter().filter_map(nanos).collect();
        let ratio = samples.cell(COUNTER, [name, DIRECT]);
        table.rows.push(vec![name.into(), nanos.join(", "), ratio]);
    }
    table
}

fn main() -> ExitCode {
    command::main(&["--bench"], child, parent)
}
