//! `cargo run --release`: measures what a log line costs with each clock.

use std::fmt;
use std::hint::black_box;
use std::io;
use std::process::ExitCode;

use tracing::dispatcher::with_default;
use tracing::{Dispatch, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use vdso_time_adapters::CoarseTime;
use vdso_time_benches::harness::command::Arguments;
use vdso_time_benches::harness::report::Report;
use vdso_time_benches::harness::samples::{self, Samples};
use vdso_time_benches::harness::{self, Contender, Row, Spacing};
use vdso_time_benches::pages::Table;

const LINE: &str = "a line of tracing-subscriber";

/// The names of the contenders: which clock the time of a line comes from, and what formats the
/// time. `default` is tracing-subscriber's own clock and format.
const CLOCKS: [&str; 4] = [
    "default",
    "std, jiff",
    "coarse clock, jiff",
    "without a time",
];

/// std's clock, formatted by jiff. [`CoarseTime`] uses jiff as well, so the difference between
/// `StdTime` and `CoarseTime` is what the coarse clock saves. tracing-subscriber's default reads
/// std's clock as well, but formats the time itself. So the difference between the default and
/// `StdTime` is what jiff's formatter saves.
struct StdTime;

impl FormatTime for StdTime {
    fn format_time(&self, out: &mut Writer<'_>) -> fmt::Result {
        write!(out, "{:.3}", jiff::Timestamp::now())
    }
}

/// Returns a contender that writes a line with this subscriber.
fn line(name: &'static str, subscriber: impl Subscriber + Send + Sync) -> Contender {
    let dispatch = Dispatch::new(subscriber);
    let dispatch: &'static Dispatch = Box::leak(Box::new(dispatch));
    Contender::new(name, move || {
        // `with_default` sets the subscriber for each line, which costs a few ns. A program with
        // only one subscriber would set it once.
        with_default(dispatch, || {
            tracing::info!(answer = black_box(42), "a request was answered");
        });
    })
}

fn child(asked: &[String]) -> Result<(), String> {
    let lines = || {
        tracing_subscriber::fmt()
            .with_writer(io::sink)
            .with_ansi(false)
    };
    let default = lines();
    let std = lines().with_timer(StdTime);
    let coarse = lines().with_timer(CoarseTime);
    let without = lines().without_time();
    let contenders = [
        line(CLOCKS[0], default.finish()),
        line(CLOCKS[1], std.finish()),
        line(CLOCKS[2], coarse.finish()),
        line(CLOCKS[3], without.finish()),
    ];
    let row = Row::new(LINE, contenders);
    samples::print(&[row], asked)
}

fn parent(arguments: &Arguments) -> Result<Report, String> {
    let rows = [LINE.to_owned()];
    let samples = Samples::collect(arguments, &rows, Samples::add_child, is_noisy)?;
    let head = [LINE, "ns", "/ default"];
    let mut table = Table::new("adapters", head);
    for clock in CLOCKS {
        let nanos = samples.both(LINE, clock, 0);
        let ratio = samples.cell(LINE, [clock, CLOCKS[0]]);
        table.add(clock, [nanos, ratio]);
    }
    let mut report = Report::default();
    report.tables.push(table);
    Ok(report)
}

/// Returns whether the noise exceeds 2 %.
fn is_noisy(samples: &Samples, row: &str) -> bool {
    for spacing in Spacing::ALL {
        let noise = samples.noise(row, spacing).unwrap_or(0.0);
        if noise > 0.02 {
            return true;
        }
    }
    false
}

fn main() -> ExitCode {
    harness::main(child, parent)
}
