//! `cargo bench --bench ratios`: what a call costs, as a ratio to the vDSO's own function, to libc, std and the system call.
//!
//! Each process measures every contender of a row in turn, and one of them twice: how far that ratio, the control, is from 1 is
//! noise. A row whose control is too far off for what is claimed of it is measured again, and in the end not told.

mod bars;
mod tables;

use std::process::ExitCode;

use bars::BARS;
use vdso_time_benches::harness::report::Report;
use vdso_time_benches::harness::samples::{self, Samples};
use vdso_time_benches::harness::{Row, arguments, arguments::Arguments};
use vdso_time_benches::rows;

/// How often a row is measured again.
const TRIES: usize = 5;

fn parent(arguments: &Arguments) -> Result<(), String> {
    let rows: Vec<Row> = rows::clocks().into_iter().filter(|row| arguments.wants(&row.name)).collect();
    let processes = arguments.effort.choose(1, 9, 25);
    let rounds = arguments.effort.choose(1, 100, 400);
    let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    let mut samples = Samples::collect(processes, rounds, &names)?;
    for _ in 0..arguments.effort.choose(0, TRIES, TRIES) {
        let noisy: Vec<&str> = names.iter().copied().filter(|row| bars::is_noisy(&samples, row)).collect();
        if noisy.is_empty() {
            break;
        }
        eprintln!("too noisy, measured again: {}", noisy.join(" "));
        samples.replace(Samples::collect(processes, rounds, &noisy)?);
    }
    let mut report = Report::new("ratios");
    report.tables.push(tables::summary(&rows, &samples));
    report.tables.push(tables::bars(&samples, BARS));
    report.tables.push(tables::ratios(&rows, &samples));
    report.bars = tables::plot(&rows, &samples);
    report.notes = rows::without_floor();
    report.finish(arguments, env!("CARGO_TARGET_TMPDIR"))
}

fn main() -> ExitCode {
    arguments::main(parent, |asked| samples::print(&rows::clocks(), asked))
}
