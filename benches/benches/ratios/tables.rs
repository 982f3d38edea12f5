//! The tables and the plot.

use vdso_time_benches::harness::report::{Bar as PlotBar, Table};
use vdso_time_benches::harness::samples::{Samples, Statistic};
use vdso_time_benches::harness::{Row, Spacing};

use crate::bars::{Bar, Figure, OTHERS, figure, subject};

/// The rows of the short table, as a program calls them.
const SUMMARY: &[(&str, &str)] = &[
    ("BM_time_time", "time()"),
    ("BM_time_gettimeofday", "gettimeofday()"),
    ("BM_time_clock_gettime", "clock_gettime(MONOTONIC)"),
    ("BM_time_clock_gettime_MONOTONIC_COARSE", "clock_gettime(MONOTONIC_COARSE)"),
    ("BM_time_clock_getres", "clock_getres(MONOTONIC)"),
    ("BM_time_getcpu", "getcpu()"),
    ("BM_counter_monotonic", "counter::monotonic()"),
    ("BM_counter_monotonic_ordered", "counter::monotonic_ordered()"),
];

/// The columns of the short table, and whose figures they are.
const COLUMNS: &[(&str, &str)] = &[
    ("vdso-time", "vdso"),
    ("the vDSO itself", "direct"),
    ("libc", "libc"),
    ("std", "std"),
    ("system call", "syscall"),
];

/// This crate's own contender has another name in some rows.
fn whose(row: &str, contender: &'static str) -> &'static str {
    if contender == "vdso" { subject(row) } else { contender }
}

fn texts(head: &[&str]) -> Vec<String> {
    head.iter().map(ToString::to_string).collect()
}

/// The nanoseconds of an isolated call.
pub(super) fn summary(rows: &[Row], samples: &Samples) -> Table {
    let mut head = texts(&["ns a call"]);
    head.extend(COLUMNS.iter().map(|(column, _)| column.to_string()));
    let mut lines = Vec::new();
    for (row, call) in SUMMARY.iter().filter(|(row, _)| rows.iter().any(|known| known.name == *row)) {
        let mut line = vec![format!("`{call}`")];
        for (_, contender) in COLUMNS {
            let nanos = samples.nanos(row, Spacing::Isolated, whose(row, contender), Statistic::Median);
            line.push(nanos.map_or_else(String::new, |nanos| format!("{nanos:.1}")));
        }
        lines.push(line);
    }
    Table { name: "summary", head, rows: lines }
}

/// The same as bars.
pub(super) fn plot(rows: &[Row], samples: &Samples) -> Vec<PlotBar> {
    let mut bars = Vec::new();
    for (row, call) in SUMMARY.iter().filter(|(row, _)| rows.iter().any(|known| known.name == *row)) {
        for &(name, contender) in COLUMNS {
            if let Some(nanos) =
                samples.nanos(row, Spacing::Isolated, whose(row, contender), Statistic::Median)
            {
                bars.push(PlotBar { plot: "calls", group: (*call).into(), name, nanos });
            }
        }
    }
    bars
}

/// The median of the processes' ratios and, in parentheses, the ratio of the fastest processes.
fn cell(samples: &Samples, row: &str, spacing: Spacing, against: &str) -> String {
    let figure = |statistic| figure(samples, row, spacing, against, statistic);
    match (figure(Statistic::Median), figure(Statistic::Minimum)) {
        (None, _) | (_, None) => String::new(),
        (Some(Figure::Noisy), _) => "not measured".into(),
        (Some(Figure::Told(median)), Some(Figure::Told(fastest))) => format!("{median:.3} ({fastest:.3})"),
        (Some(Figure::Told(median)), Some(Figure::Noisy)) => format!("{median:.3} (noisy)"),
    }
}

fn control(samples: &Samples, row: &str, spacing: Spacing) -> String {
    let control = |statistic| samples.control(row, spacing, statistic);
    match (control(Statistic::Median), control(Statistic::Minimum)) {
        (Some(median), Some(fastest)) => format!("{median:.3} ({fastest:.3})"),
        _ => String::new(),
    }
}

/// What is claimed, and what was found.
pub(super) fn bars(samples: &Samples, bars: &[Bar]) -> Table {
    let mut lines = Vec::new();
    for bar in bars {
        let found = figure(samples, bar.row, bar.spacing, bar.against, Statistic::Median);
        let verdict = match found {
            // Another row was asked for, or this machine's vDSO has no such function.
            None => continue,
            Some(Figure::Noisy) => "not measured",
            Some(Figure::Told(ratio)) if ratio <= bar.at_most => "met",
            Some(Figure::Told(_)) => "missed",
        };
        lines.push(vec![
            format!("{} / {}", bar.row, bar.against),
            bar.spacing.name().into(),
            cell(samples, bar.row, bar.spacing, bar.against),
            format!("≤ {:.2}", bar.at_most),
            verdict.into(),
            control(samples, bar.row, bar.spacing),
        ]);
    }
    let head = texts(&["vdso-time's ratio", "spacing", "found", "bar", "", "control"]);
    Table { name: "bars", head, rows: lines }
}

/// Every row: what the call of this crate costs, and how that compares with the others.
pub(super) fn ratios(rows: &[Row], samples: &Samples) -> Table {
    let mut head = texts(&["row", "spacing", "ns"]);
    head.extend(OTHERS.map(|other| format!("/ {other}")));
    head.push("control".into());
    let mut lines = Vec::new();
    for Row { name: row, .. } in rows {
        for spacing in Spacing::ALL {
            let nanos = samples.nanos(row, spacing, subject(row), Statistic::Median).unwrap_or(f64::NAN);
            let mut line = vec![row.clone(), spacing.name().into(), format!("{nanos:.2}")];
            line.extend(OTHERS.map(|other| cell(samples, row, spacing, other)));
            line.push(control(samples, row, spacing));
            lines.push(line);
        }
    }
    Table { name: "ratios", head, rows: lines }
}
