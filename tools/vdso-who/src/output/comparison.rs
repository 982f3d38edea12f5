//! The table of a comparison with an earlier report.

use super::table::{cell, fitted};
use crate::report::{Change, Comparison, Report};
use crate::text::number;

pub(super) const TITLE: &str = "  before     +-     now     +-   change  ";

/// The maximum number of processes in a table, and of callers of each process.
const MOST_PROCESSES: usize = 20;
const MOST_CALLERS: usize = 10;

/// Returns the sentence about all watched processes.
pub(super) fn verdict(comparison: &Comparison) -> String {
    let whole = &comparison.whole;
    let (Some(before), Some(error)) = (whole.before_percent, whole.before_percent_error) else {
        return "In the earlier report, the share is not known.".into();
    };
    let before = format!(
        "In the earlier report it was {} % +-{} %",
        number(before),
        number(error)
    );
    match whole.exceeds_errors {
        Some(true) => format!("{before}: the difference exceeds both errors together."),
        Some(false) => format!("{before}: the difference does not exceed both errors together."),
        None => format!("{before}."),
    }
}

/// Explains the columns.
pub(super) fn figures(report: &Report, comparison: &Comparison) -> String {
    let mut note = format!(
        "{} samples, {:.2} s of CPU time in {:.1} s. `before`, `now`: share of the CPU time of the processes of that \
         name; `+-`: the largest error with 95 % confidence, samples that may be reads included; `change`: \
         percentage points, or `~` if both errors together can explain the difference; `-`: unknown, because one \
         report does not have the process or its share.",
        report.samples, report.cpu_seconds, report.seconds
    );
    if !comparison.is_same_measure {
        note += " One of the reports has shares of all CPU time, and the other one has shares of the CPU time in \
                 user space, so they cannot be compared: run both as root, or neither.";
    }
    note
}

/// Returns the lines of the processes and callers, with names of at most `width` columns.
pub(super) fn rows(comparison: &Comparison, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for process in comparison.processes.iter().take(MOST_PROCESSES) {
        lines.push(line(process.change, &process.name, width));
        for caller in process.callers.iter().take(MOST_CALLERS) {
            lines.push(line(
                caller.change,
                &format!("  {}", caller.function),
                width,
            ));
            if let Some(called_by) = &caller.called_by {
                let indent = TITLE.len();
                let name = fitted(&format!("    in {called_by}"), width);
                lines.push(format!("{:indent$}{name}", ""));
            }
        }
    }
    lines
}

fn line(change: Change, name: &str, width: usize) -> String {
    let difference = match (change.exceeds_errors, change.difference()) {
        (Some(true), Some(difference)) => format!("{difference:+.2}"),
        (Some(false), _) => "~".into(),
        _ => "-".into(),
    };
    format!(
        "{:>8} {:>6} {:>7} {:>6} {difference:>8}  {}",
        cell(change.before_percent, number),
        cell(change.before_percent_error, number),
        cell(change.percent, number),
        cell(change.percent_error, number),
        fitted(name, width)
    )
}
