//! Call chains in the form `process;outer;inner;function NUMBER`, which flamegraph.pl, inferno and
//! speedscope read.

use crate::report::Report;

pub(super) fn text(report: &Report) -> String {
    let mut text = String::new();
    for line in &report.folded {
        text += line;
        text.push('\n');
    }
    text
}
