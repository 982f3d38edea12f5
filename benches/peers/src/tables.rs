//! The tables and the plots.

use vdso_time_benches::harness::report::{Bar, Table};
use vdso_time_benches::harness::samples::{Samples, Statistic};
use vdso_time_benches::harness::{Row, Spacing};

use crate::bars::SCALING;
use crate::figures::{self, Told, told};
use crate::foreign::Foreign;
use crate::instructions::Counts;
use crate::rows::{COUNTER, DIRECT, ELAPSED, MONOTONIC, ORDERED, OURS, TRACEABLE};
use crate::{discovery, scaling};

/// Whose calls are compared, in the order of the columns.
const CALLERS: &[&str] = &[
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
    "system call",
];

fn texts(head: &[&str]) -> Vec<String> {
    head.iter().map(ToString::to_string).collect()
}

/// The rows that are one function each.
fn is_call(row: &str) -> bool {
    ![ELAPSED, COUNTER, ORDERED].contains(&row)
}

fn nanos(samples: &Samples, row: &str, spacing: Spacing, contender: &str) -> String {
    let nanos = samples.nanos(row, spacing, contender, Statistic::Median);
    nanos.map_or_else(String::new, |nanos| format!("{nanos:.2}"))
}

fn cell(samples: &Samples, row: &str, spacing: Spacing, contender: &str) -> String {
    match told(samples, row, spacing, contender) {
        Told::Ratio { median, fastest } => format!("{median:.3} ({fastest:.3})"),
        Told::Noisy => "not measured".into(),
        Told::Absent => String::new(),
    }
}

fn control(samples: &Samples, row: &str, spacing: Spacing, of: &str) -> String {
    let noise = figures::noise(samples, row, spacing, of);
    noise.map_or_else(String::new, |noise| format!("{:.2}%", 100.0 * noise))
}

/// Each call, as multiples of `direct`.
pub fn calls(rows: &[Row], samples: &Samples, spacing: Spacing, name: &'static str) -> Table {
    let mut head = texts(&["", "direct, ns"]);
    head.extend(CALLERS.iter().map(ToString::to_string));
    head.push("control off by".into());
    let mut lines = Vec::new();
    for row in rows.iter().map(|row| row.name.as_str()).filter(|row| is_call(row)) {
        let mut line = vec![row.into(), nanos(samples, row, spacing, DIRECT)];
        line.extend(CALLERS.iter().map(|contender| cell(samples, row, spacing, contender)));
        line.push(control(samples, row, spacing, OURS));
        lines.push(line);
    }
    Table { name, head, rows: lines }
}

/// Each call, in instructions more than `direct`.
pub fn instructions(rows: &[Row], counts: &Counts) -> Table {
    let callers: Vec<&str> = CALLERS.iter().copied().filter(|caller| !caller.starts_with("Go ")).collect();
    let mut head = texts(&["instructions", DIRECT]);
    head.extend(callers.iter().map(ToString::to_string));
    let mut lines = Vec::new();
    for row in rows.iter().map(|row| row.name.as_str()).filter(|row| is_call(row)) {
        let mut line =
            vec![row.into(), counts.direct(row).map_or_else(String::new, |count| count.to_string())];
        let more = |contender: &&str| {
            counts.more(row, contender).map_or_else(String::new, |more| format!("{more:+}"))
        };
        line.extend(callers.iter().map(more));
        lines.push(line);
    }
    Table { name: "peers-instructions", head, rows: lines }
}

/// The clocks that are more or less than one call, a contender a line.
pub fn clocks(rows: &[Row], samples: &Samples, counts: &Counts) -> Table {
    let head = texts(&[
        "",
        "contender",
        "back to back, ns",
        "/ direct",
        "isolated, ns",
        "/ direct",
        "instructions, less direct's",
        "control off by",
    ]);
    let mut lines = Vec::new();
    for row in rows.iter().filter(|row| !is_call(&row.name)) {
        let native = row.contenders.iter().map(|contender| contender.name);
        for contender in native.chain(["Go time.Now"]) {
            let mut line = vec![row.name.clone(), contender.into()];
            for spacing in Spacing::ALL {
                line.push(nanos(samples, &row.name, spacing, contender));
                line.push(cell(samples, &row.name, spacing, contender));
            }
            if line[2].is_empty() {
                continue;
            }
            let more = counts.more(&row.name, contender);
            line.push(more.map_or_else(String::new, |more| format!("{more:+}")));
            line.push(control(samples, &row.name, Spacing::Isolated, contender));
            lines.push(line);
        }
    }
    Table { name: "peers-clocks", head, rows: lines }
}

/// The way from the image to its functions.
pub fn discovery(samples: &Samples) -> Table {
    let finders = [OURS, "vdso-time, locate()", "selftests' parser", "linux-raw-vdso", "goblin"];
    let mut head = texts(&["ns"]);
    head.extend(finders.map(str::to_string));
    head.push("control off by".into());
    let mut lines = Vec::new();
    for cold in ["", discovery::COLD] {
        for row in discovery::ROWS {
            let row = format!("{row}{cold}");
            let mut line = vec![row.clone()];
            line.extend(finders.map(|finder| nanos(samples, &row, Spacing::Isolated, finder)));
            line.push(control(samples, &row, Spacing::Isolated, OURS));
            lines.push(line);
        }
    }
    Table { name: "peers-discovery", head, rows: lines }
}

/// A call beside another thread's, as a multiple of the same call alone.
pub fn scaling(samples: &Samples) -> Table {
    let head = texts(&["a call while another thread makes it", "back to back", "isolated", "control off by"]);
    let mut lines = Vec::new();
    for (.., name) in scaling::CONTENDERS {
        let row = if *name == OURS { SCALING.to_string() } else { format!("{SCALING}: {name}") };
        let ratio = |spacing| {
            let ratio = samples.ratio(&row, spacing, [OURS, "alone"], Statistic::Median);
            ratio.map_or_else(String::new, |ratio| format!("{ratio:.3}"))
        };
        let mut line = vec![(*name).to_string()];
        line.extend(Spacing::ALL.map(ratio));
        line.push(control(samples, &row, Spacing::Isolated, OURS));
        lines.push(line);
    }
    Table { name: "peers-scaling", head, rows: lines }
}

/// The releases that were compared.
pub fn versions(foreign: &[Foreign]) -> Table {
    const NAMES: [&str; 9] = [
        "clocksource",
        "coarsetime",
        "fastant",
        "goblin",
        "libc",
        "linux-raw-vdso",
        "minstant",
        "quanta",
        "rustix",
    ];
    let lock = include_str!("../Cargo.lock");
    let version = |name: &str| {
        let (_, rest) = lock.split_once(&format!("name = \"{name}\"\nversion = \""))?;
        Some(rest.split_once('"')?.0.to_string())
    };
    let mut lines: Vec<Vec<String>> =
        NAMES.iter().filter_map(|name| Some(vec![(*name).to_string(), version(name)?])).collect();
    lines.extend(foreign.iter().map(|it| vec![it.name.into(), it.version.clone()]));
    Table { name: "peers-versions", head: texts(&["contender", "release"]), rows: lines }
}

/// The isolated calls, and the counter clocks.
pub fn plots(rows: &[Row], samples: &Samples) -> Vec<Bar> {
    let mut bars = Vec::new();
    let plotted =
        ["time()", MONOTONIC, "clock_gettime(MONOTONIC_COARSE)", "clock_getres(MONOTONIC)", "getcpu()"];
    let mut add = |plot, row: &str, name: &'static str| {
        let nanos = samples.nanos(row, Spacing::Isolated, name, Statistic::Median);
        // Beside a fence something may seem to cost nothing.
        bars.extend(nanos.filter(|nanos| *nanos > 0.0).map(|nanos| Bar {
            plot,
            group: row.into(),
            name,
            nanos,
        }));
    };
    for row in plotted {
        for contender in [&DIRECT].into_iter().chain(CALLERS) {
            add("peers", row, contender);
        }
    }
    for row in rows.iter().filter(|row| !is_call(&row.name)) {
        for contender in &row.contenders {
            add("peers_clocks", &row.name, contender.name);
        }
    }
    bars
}
