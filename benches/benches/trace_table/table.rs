//! The table, ours beside the published one.

use vdso_time_benches::harness::Spacing;
use vdso_time_benches::harness::report::Table;
use vdso_time_benches::harness::samples::{Samples, Statistic};

use crate::{ROWS, name};

/// As many calls as the published totals are of.
const CALLS: f64 = 100_000.0;

/// The published overheads of a call in nanoseconds, of call ops and of the list, in the order of the rows; none is told without a relevant
/// tracer.
const PUBLISHED: &[Option<[f64; 2]>] = &[
    None,
    None,
    None,
    None,
    None,
    Some([1.86, 63.73]),
    Some([1.87, 74.15]),
    Some([1.86, 236.92]),
    Some([1.87, 1063.38]),
    Some([1.86, 13.37]),
    Some([64.08, 63.62]),
    Some([185.87, 226.22]),
    Some([1034.56, 1031.99]),
];

/// Back to back, as published, and isolated; the overhead is over the bare call, in the same process.
pub(crate) fn published(rows: &[[usize; 2]], samples: &Samples) -> Table {
    let mut lines = Vec::new();
    for (spacing, row) in
        Spacing::ALL.into_iter().flat_map(|spacing| rows.iter().map(move |row| (spacing, row)))
    {
        let row_name = name(*row);
        let bare = samples.nanos(&row_name, spacing, "bare", Statistic::Median);
        let bare = bare.unwrap_or(f64::NAN);
        // By the ratios within each process: the CPU is faster in one than in another.
        let nanos = |contender| {
            let pair = [contender, "bare"];
            let ratio = samples.ratio(&row_name, spacing, pair, Statistic::Median);
            bare * ratio.unwrap_or(f64::NAN)
        };
        let mut line = vec![spacing.name().to_string()];
        line.extend(row.map(|tracers| tracers.to_string()));
        let overhead = |contender| nanos(contender) - bare;
        for contender in ["call ops", "list"] {
            line.push(format!("{:.0}", nanos(contender) * CALLS));
            line.push(format!("{:.2}", nanos(contender)));
            line.push(hundredths(overhead(contender)));
        }
        let published = ROWS.iter().zip(PUBLISHED).find(|(known, _)| *known == row);
        match published.and_then(|(_, published)| *published) {
            Some([ops, list]) => {
                line.push(format!("{:.3}", overhead("call ops") / overhead("list")));
                line.push(format!("{ops} / {list} = {:.3}", ops / list));
            }
            None => line.extend([String::new(), String::new()]),
        }
        let control = samples.control(&row_name, spacing, Statistic::Median);
        line.push(control.map_or_else(String::new, |control| format!("{control:.3}")));
        lines.push(line);
    }
    let head = [
        "spacing",
        "relevant",
        "irrelevant",
        "call ops: 100,000 calls, ns",
        "a call",
        "overhead",
        "list: 100,000 calls, ns",
        "a call",
        "overhead",
        "ratio",
        "published",
        "control",
    ];
    Table { name: "trace", head: head.map(str::to_string).to_vec(), rows: lines }
}

/// Two digits behind the point, and no minus before a zero.
fn hundredths(nanos: f64) -> String {
    let text = format!("{nanos:.2}");
    if text == "-0.00" { "0.00".into() } else { text }
}
