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

/// The ways in which the lines get their times. The first is the default of tracing-subscriber.
const CLOCKS: [&str; 4] = [
    "default",
    "std, jiff",
    "coarse clock, jiff",
    "without a time",
];

/// std's clock with the formatter of [`CoarseTime`]. The difference to it shows which part of the
/// gain comes from the clock.
struct StdTime;

impl FormatTime for StdTime {
    fn format_time(&self, out: &mut Writer<'_>) -> fmt::Result {
        write!(out, "{:.3}", jiff::Timestamp::now())
    }
}

/// Returns a contender that writes a line with this subscriber.
fn line(name: &'static str, subscriber: impl Subscriber + Send + Sync) -> Contender {
    let subscriber: &'static Dispatch = Box::leak(Box::new(Dispatch::new(subscriber)));
    Contender::new(name, move || {
        // A program would set its only subscriber once, which saves a few ns in each line.
        with_default(subscriber, || {
            tracing::info!(answer = black_box(42), "a request was answered")
        });
    })
}

fn child(asked: &[String]) -> Result<(), String> {
    let lines = || {
        tracing_subscriber::fmt()
            .with_writer(io::sink)
            .with_ansi(false)
    };
    let [default, std, coarse, without] = CLOCKS;
    let contenders = [
        line(default, lines().finish()),
        line(std, lines().with_timer(StdTime).finish()),
        line(coarse, lines().with_timer(CoarseTime).finish()),
        line(without, lines().without_time().finish()),
    ];
    samples::print(&[Row::new(LINE, contenders)], asked)
}

fn parent(arguments: &Arguments) -> Result<Report, String> {
    let is_noisy = |samples: &Samples, row: &str| {
        Spacing::ALL.iter().any(|&spacing| {
            samples
                .noise(row, spacing)
                .is_some_and(|noise| noise > 0.02)
        })
    };
    let samples = Samples::collect(arguments, &[LINE.into()], Samples::add_child, is_noisy)?;
    let mut table = Table::new("adapters", [LINE, "ns", "/ default"]);
    for clock in CLOCKS {
        table.add(
            clock,
            [
                samples.both(LINE, clock, 0),
                samples.cell(LINE, [clock, CLOCKS[0]]),
            ],
        );
    }
    Ok(Report {
        tables: vec![table],
        ..Report::default()
    })
}

fn main() -> ExitCode {
    harness::main(child, parent)
}
