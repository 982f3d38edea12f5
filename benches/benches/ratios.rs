//! `cargo bench --bench ratios`: what a call costs, compared with the vDSO's own function, libc, std
//! and the system call, and how long it takes to find the vDSO's functions.

#![allow(unsafe_code, reason = "parsers that take a pointer")]

use std::hint::black_box;
use std::process::ExitCode;

use vdso_time::Route;
use vdso_time::vdso::Vdso;
use vdso_time_benches::calls::{self, COUNTERS, FUNCTIONS, SYSCALL, TICKS, TIME_NOW};
use vdso_time_benches::harness::bars::{self, Bar, both, isolated};
use vdso_time_benches::harness::command::{self, Arguments};
use vdso_time_benches::harness::document::{Report, Table};
use vdso_time_benches::harness::plot::Chart;
use vdso_time_benches::harness::samples::{self, DIRECT, OURS, Samples};
use vdso_time_benches::harness::{Contender, Row, Spacing};

const BARS: &[Bar] = &[
    isolated("time()", DIRECT, 1.03),
    isolated("time()", "libc", 1.03),
    isolated("time()", "std", 0.10),
    isolated("time()", SYSCALL, 0.03),
    both(TIME_NOW, SYSCALL, 0.20),
    both("gettimeofday()", DIRECT, 1.01),
    both("clock_gettime(REALTIME)", DIRECT, 1.01),
    both("clock_gettime(MONOTONIC)", DIRECT, 1.01),
    both("clock_gettime(BOOTTIME)", DIRECT, 1.01),
    both("clock_gettime(TAI)", DIRECT, 1.01),
    both("clock_gettime(MONOTONIC_RAW)", DIRECT, 1.01),
    both("clock_gettime(MONOTONIC)", "libc", 0.99),
    both("clock_gettime(MONOTONIC)", "std", 0.96),
    both("clock_gettime(MONOTONIC)", SYSCALL, 0.15),
    isolated("clock_gettime(REALTIME_COARSE)", DIRECT, 1.08),
    isolated("clock_gettime(MONOTONIC_COARSE)", DIRECT, 1.08),
    isolated("clock_gettime(REALTIME_COARSE)", "libc", 0.90),
    isolated("clock_gettime(MONOTONIC_COARSE)", "libc", 0.90),
    both("clock_getres(MONOTONIC)", DIRECT, 1.03),
    both("clock_getres(MONOTONIC)", "libc", 0.92),
    both("getcpu()", DIRECT, 1.03),
    both("cpu()", DIRECT, 0.25),
    both("counter::monotonic()", TICKS, 1.03),
    both("counter::monotonic_ordered()", TICKS, 1.03),
    both("counter::realtime()", SYSCALL, 0.14),
    // linux-raw-vdso checks nothing and needs section headers, so this crate's parser is slower.
    isolated(FIND, RAW_VDSO, 2.00),
];

const FIND: &str = "find the functions";
const LOCATE: &str = "vdso-time, locate()";
const RAW_VDSO: &str = "linux-raw-vdso";

/// The finders, from the image's address to those of its functions.
fn find() -> Option<Row> {
    let vdso = Vdso::locate().ok()?;
    let base = vdso.base();
    let symbol = |(_, route): (_, Route)| match route {
        Route::Vdso { symbol, version, .. } => Some((symbol, version)),
        _ => None,
    };
    let symbols: Vec<_> = vdso_time::routes().functions().into_iter().filter_map(symbol).collect();
    let symbols: &'static [_] = symbols.leak();
    let find = move |vdso: Vdso<'_>| {
        for &(name, version) in symbols {
            black_box(vdso.symbol_address(name, version));
        }
    };
    let raw = move || {
        // SAFETY: the kernel's image is at `base`. It looks for its own four functions.
        let _ = black_box(unsafe { linux_raw_vdso::Vdso::from_ptr(base.cast()) });
    };
    let ours = move || {
        // SAFETY: the kernel's image is at `base`.
        find(unsafe { Vdso::from_ptr(base) }.expect("it is mapped"));
    };
    let locate = move || find(Vdso::locate().expect("it is mapped"));
    let contenders =
        [Contender::new(RAW_VDSO, raw), Contender::new(LOCATE, locate), Contender::new(OURS, ours)];
    Some(Row::new(FIND, contenders))
}

fn rows() -> Vec<Row> {
    calls::rows().into_iter().chain(find()).collect()
}

/// The rows of the short table.
fn summary_rows() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.into_iter().chain(["cpu()", "clock_gettime(MONOTONIC_COARSE)"]).chain(COUNTERS)
}

const SUMMARY: [&str; 5] = [OURS, DIRECT, "libc", "std", SYSCALL];
const OTHERS: [&str; 5] = [DIRECT, "libc", "std", SYSCALL, TICKS];

fn child(asked: &[String]) -> Result<(), String> {
    let rows = rows();
    calls::settle();
    samples::print(&rows, asked)
}

fn parent(arguments: &Arguments) -> Result<Report, String> {
    let names: Vec<String> =
        rows().into_iter().map(|row| row.name).filter(|row| arguments.wants(row)).collect();
    let is_noisy = |samples: &Samples, row: &str| bars::is_noisy(BARS, samples, row);
    let samples = Samples::collect(arguments, &names, Samples::add_child, is_noisy)?;
    let (bars, missed) = bars::table("bars", BARS, &samples);
    let group = |row: &str| {
        let nanos = |name: &&str| Some(((*name).to_string(), samples.nanos(row, Spacing::Isolated, name)?));
        (row.to_string(), SUMMARY.iter().filter_map(nanos).collect())
    };
    let wanted: Vec<_> = summary_rows().filter(|row| names.iter().any(|name| name == row)).collect();
    let groups = wanted.iter().copied().map(group).collect();
    let title = "Nanoseconds of an isolated call; the lengths are logarithmic";
    let head = ["ns a call", OURS, "the vDSO itself", "libc", "std", SYSCALL];
    let mut summary = isolated_nanos("summary", &head, SUMMARY, wanted.into_iter(), &samples);
    summary.rows.iter_mut().for_each(|row| row[0] = format!("`{}`", row[0]));
    let finders = [OURS, LOCATE, RAW_VDSO];
    let head = ["ns", OURS, LOCATE, RAW_VDSO];
    let found = names.iter().map(String::as_str).filter(|name| *name == FIND);
    let discovery = isolated_nanos("discovery", &head, finders, found, &samples);
    Ok(Report {
        tables: vec![summary, ratios(&names, &samples), discovery, bars],
        charts: vec![Chart { file: "calls.svg", title, groups }],
        missed,
        notes: calls::notes(),
    })
}

/// The nanoseconds of isolated calls by these contenders.
fn isolated_nanos<'a, const N: usize>(
    name: &'static str,
    head: &[&str],
    contenders: [&str; N],
    rows: impl Iterator<Item = &'a str>,
    samples: &Samples,
) -> Table {
    let mut table = Table::new(name, head);
    for row in rows {
        let nanos = |name| samples.nanos(row, Spacing::Isolated, name);
        let cells =
            contenders.map(|name| nanos(name).map_or_else(String::new, |nanos| format!("{nanos:.1}")));
        table.rows.push([vec![row.into()], cells.to_vec()].concat());
    }
    table
}

/// Every row: the nanoseconds of this crate, and its ratios in both spacings.
fn ratios(rows: &[String], samples: &Samples) -> Table {
    let others = OTHERS.map(|other| format!("/ {other}"));
    let head: Vec<&str> = ["row", "ns"].into_iter().chain(others.iter().map(String::as_str)).collect();
    let mut table = Table::new("ratios", &head);
    for row in rows.iter().filter(|row| *row != FIND) {
        let nanos = |spacing| Some(format!("{:.1}", samples.nanos(row, spacing, OURS)?));
        let nanos: Vec<String> = Spacing::ALL.into_iter().filter_map(nanos).collect();
        if !nanos.is_empty() {
            let cells = OTHERS.map(|other| samples.cell(row, [OURS, other]));
            table.rows.push([vec![row.clone(), nanos.join(", ")], cells.to_vec()].concat());
        }
    }
    table
}

fn main() -> ExitCode {
    command::main(&[], child, parent)
}
