//! Call chains, `process;outer;inner;function NUMBER`, as flamegraph.pl, inferno and speedscope
//! read them.

use crate::report::Report;

pub(super) fn text(report: &Report) -> String {
    let mut text = String::new();
    for line in &report.folded {
        text += line;
        text.push('\n');
    }
    text
}
