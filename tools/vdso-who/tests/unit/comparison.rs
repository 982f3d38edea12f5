//! Tests of the comparison of two reports.

use std::sync::Arc;

use super::*;
use crate::address_space::Caller;
use crate::arguments::arguments;
use crate::output::table;
use crate::text::COLUMNS;

/// A function and its samples in clock reads.
type Function = (&'static str, u64);

/// Returns a report about these processes. Each has an id, a name, a number of samples, and
/// functions that read the clock.
fn report(processes: &[(u32, &str, u64, &[Function])]) -> Report {
    let options = arguments("--all --compare before.json");
    let mut found = Findings::default();
    for (pid, name, samples, functions) in processes.iter().copied() {
        let mut group = Group {
            samples,
            pids: [pid].into(),
            ..Group::default()
        };
        for (function, records) in functions.iter().copied() {
            let caller = Caller {
                first: Arc::new(Frame::unknown(function.into(), "module")),
                ..Caller::unknown()
            };
            let counts = Counts {
                records,
                ..Counts::default()
            };
            group.callers.insert(caller, counts);
            found.reads += records;
        }
        found.samples += samples;
        let key = Key {
            name: name.into(),
            pid: Some(pid),
            ..Key::default()
        };
        found.groups.insert(key, group);
    }
    let base = Report {
        system_wide: true,
        ..Report::new(&options, None, None)
    };
    let cpu = Duration::from_secs_f64(found.samples as f64 / f64::from(base.frequency));
    let mut report = base.of_part(Duration::from_secs(1), cpu);
    report.finish(found);
    report
}

/// Returns the shares that a later run reads from the JSON of a report.
fn written(report: &Report) -> Shares {
    serde_json::from_str(&serde_json::to_string(report).unwrap()).unwrap()
}

/// Compares two runs, in which the processes have different ids. The errors are those of Wilson's
/// intervals: 12 of 100 are 12 % +-7.8 %, 24 of 100 are 24 % +-9.23 %, 50 of 100 are 50 % +-9.6 %,
/// and 0 of 100 are 0 % +-3.7 %.
#[test]
fn a_difference_counts_if_it_exceeds_both_errors() {
    let before = report(&[
        (1, "server", 100, &[("log", 12), ("poll", 12), ("gone", 50)]),
        (2, "only before", 100, &[("log", 50)]),
        (3, "helped", 60, &[("log", 30)]),
        (4, "helped", 40, &[("log", 20)]),
    ]);
    let mut now = report(&[
        (11, "server", 100, &[("log", 50), ("poll", 24)]),
        (12, "only now", 100, &[("log", 50)]),
        (13, "helped", 100, &[]),
    ]);
    now.compare(&written(&before)).unwrap();
    let comparison = now.comparison.as_ref().unwrap();
    for (process, function, expected) in [
        ("server", "log", (Some(12.0), Some(50.0), Some(true))),
        ("server", "poll", (Some(12.0), Some(24.0), Some(false))),
        ("server", "gone", (Some(50.0), Some(0.0), Some(true))),
        ("only before", "log", (Some(50.0), None, None)),
        ("only now", "log", (None, Some(50.0), None)),
        ("helped", "log", (Some(50.0), Some(0.0), Some(true))),
    ] {
        let row = comparison.processes.iter().find(|row| row.name == process);
        let callers = &row.unwrap().callers;
        let row = callers.iter().find(|row| row.function == function).unwrap();
        let change = row.change;
        let found = (change.before_percent, change.percent, change.exceeds_errors);
        assert_eq!(found, expected, "{process} {function}: {change:?}");
    }
    let whole = comparison.whole;
    let error = whole.percent_error.unwrap();
    assert!((error - now.whole.percent_error.unwrap()).abs() < 1e-9);
    let text = table::text(&now, COLUMNS);
    for expected in [
        "In the earlier report it was 58.0 % +-",
        "    12.0   7.81    50.0   9.62   +38.00    log\n",
        "    12.0   7.81    24.0   9.23        ~    poll\n",
        "    50.0   9.62       -      -        -  only before\n",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= COLUMNS));
    // If only one of the reports has shares of the CPU time in user space, they cannot be compared.
    let mut other = before.clone();
    other.system_wide = false;
    now.compare(&written(&other)).unwrap();
    let comparison = now.comparison.as_ref().unwrap();
    assert_eq!(comparison.whole.exceeds_errors, None);
    let text = table::text(&now, COLUMNS).replace('\n', " ");
    assert!(text.contains("so they cannot be compared"), "{text}");
}

/// The earlier report has samples in unknown system calls, any of which may be clock reads, so its
/// error is larger.
#[test]
fn a_comparison_allows_for_samples_that_are_not_known() {
    let mut before = report(&[(1, "server", 100, &[("log", 12)])]);
    let row = &mut before.processes[0].amounts;
    // The error of Wilson's interval, plus 40 % because 40 of the 100 samples are unknown.
    row.percent_error = Some(7.812_3 + 40.0);
    let mut now = report(&[(1, "server", 100, &[("log", 50)])]);
    now.compare(&written(&before)).unwrap();
    let comparison = now.comparison.as_ref().unwrap();
    let change = comparison.processes[0].callers[0].change;
    assert_eq!(change.exceeds_errors, Some(false), "{change:?}");
    let error = change.before_percent_error.unwrap();
    assert!((error - 47.812_3).abs() < 1e-3, "{change:?}");
}
