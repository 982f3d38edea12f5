//! `cargo run --release`: what a log line costs with each clock.

use std::fmt;
use std::hint::black_box;
use std::io;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Metadata, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use vdso_time_adapters::CoarseTime;
use vdso_time_benches::harness::command::Arguments;
use vdso_time_benches::harness::report::Report;
use vdso_time_benches::harness::samples::{self, Samples};
use vdso_time_benches::harness::{self, Contender, Row, Spacing};
use vdso_time_benches::pages::Table;

const LINE: &str = "a line of tracing-subscriber";

/// How the lines get their times. The first is the crate's default.
const CLOCKS: [&str; 4] = ["default", "std, jiff", "coarse clock, jiff", "without a time"];

/// The subscribers of tracing-subscriber, and which of them gets an event. Only one can be global.
static SUBSCRIBERS: OnceLock<[Dispatch; 4]> = OnceLock::new();
static CHOICE: AtomicUsize = AtomicUsize::new(0);

/// std's clock with the formatter of [`CoarseTime`]. It shows which part of the gain is the
/// clock's.
struct StdTime;

impl FormatTime for StdTime {
    fn format_time(&self, out: &mut Writer<'_>) -> fmt::Result {
        write!(out, "{:.3}", jiff::Timestamp::now())
    }
}

struct Chosen;

impl Subscriber for Chosen {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn event(&self, event: &Event<'_>) {
        if let Some(subscribers) = SUBSCRIBERS.get() {
            subscribers[CHOICE.load(Relaxed)].event(event);
        }
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Returns a contender that writes a line with this subscriber.
fn line(name: &'static str, choice: usize) -> Contender {
    Contender::new(name, move || {
        CHOICE.store(choice, Relaxed);
        tracing::info!(answer = black_box(42), "a request was answered");
    })
}

fn child(asked: &[String]) -> Result<(), String> {
    let lines = || tracing_subscriber::fmt().with_writer(io::sink).with_ansi(false);
    let coarse = Dispatch::new(lines().with_timer(CoarseTime).finish());
    let std = Dispatch::new(lines().with_timer(StdTime).finish());
    let subscribers =
        [Dispatch::new(lines().finish()), std, coarse, Dispatch::new(lines().without_time().finish())];
    SUBSCRIBERS.set(subscribers).map_err(|_| "set twice")?;
    tracing::subscriber::set_global_default(Chosen).map_err(|error| error.to_string())?;
    let lines = CLOCKS.into_iter().zip(0..).map(|(name, choice)| line(name, choice));
    samples::print(&[Row::new(LINE, lines)], asked)
}

fn parent(arguments: &Arguments) -> Result<Report, String> {
    let is_noisy = |samples: &Samples, row: &str| {
        Spacing::ALL.iter().any(|&spacing| samples.noise(row, spacing).is_some_and(|noise| noise > 0.02))
    };
    let samples = Samples::collect(arguments, &[LINE.into()], Samples::add_child, is_noisy)?;
    let mut table = Table::new("adapters", [LINE, "ns", "/ default"]);
    for clock in CLOCKS {
        table.add(clock, [samples.both(LINE, clock, 0), samples.cell(LINE, [clock, CLOCKS[0]])]);
    }
    Ok(Report { tables: vec![table], ..Report::default() })
}

fn main() -> ExitCode {
    harness::main(child, parent)
}
