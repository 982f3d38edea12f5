//! `cargo run --release`: what a log line and a check of a rate limiter cost with each clock.

use std::fmt;
use std::hint::black_box;
use std::io;
use std::num::NonZeroU32;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use governor::clock::{Clock, QuantaClock};
use governor::middleware::NoOpMiddleware;
use governor::{Quota, RateLimiter};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Metadata, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use vdso_time_adapters::governor_clock::{CounterClock, MonotonicClock};
use vdso_time_adapters::tracing_timer::CoarseTime;
use vdso_time_benches::calls;
use vdso_time_benches::harness::command::Arguments;
use vdso_time_benches::harness::report::Report;
use vdso_time_benches::harness::samples::{self, Samples};
use vdso_time_benches::harness::{self, Contender, Row, Spacing};
use vdso_time_benches::pages::Table;

const LINE: &str = "a line of tracing-subscriber";
const CHECK: &str = "a check of governor";

/// The contenders of each row. The first is the crate's default.
const LINES: [&str; 4] = ["default", "std, jiff", "coarse clock, jiff", "without a time"];
const CHECKS: [&str; 3] = ["default (quanta)", "vDSO", "counter"];
const ROWS: [(&str, &[&str]); 2] = [(LINE, &LINES), (CHECK, &CHECKS)];

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

/// Returns a contender that checks a limiter that always allows.
fn check<C>(name: &'static str, clock: C) -> Contender
where
    C: Clock + 'static,
    C::Instant: 'static,
{
    let quota = Quota::per_second(NonZeroU32::MAX).allow_burst(NonZeroU32::MAX);
    let limiter = RateLimiter::<_, _, _, NoOpMiddleware<C::Instant>>::direct_with_clock(quota, clock);
    let limiter: &'static _ = Box::leak(Box::new(limiter));
    Contender::new(name, move || {
        let _ = black_box(limiter.check());
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
    calls::settle();
    let [quanta, vdso, counter] = CHECKS;
    let lines = LINES.into_iter().zip(0..).map(|(name, choice)| line(name, choice));
    let checks =
        [check(quanta, QuantaClock::default()), check(vdso, MonotonicClock), check(counter, CounterClock)];
    samples::print(&[Row::new(LINE, lines), Row::new(CHECK, checks)], asked)
}

fn parent(arguments: &Arguments) -> Result<Report, String> {
    let names = ROWS.map(|(row, _)| row.to_string());
    let names: Vec<String> = names.into_iter().filter(|row| arguments.wants(row)).collect();
    let is_noisy = |samples: &Samples, row: &str| {
        Spacing::ALL.iter().any(|&spacing| samples.noise(row, spacing).is_some_and(|noise| noise > 0.02))
    };
    let samples = Samples::collect(arguments, &names, Samples::add_child, is_noisy)?;
    let mut table = Table::new("adapters", ["", "clock", "ns", "/ default"]);
    for (row, clocks) in ROWS.iter().filter(|(row, _)| names.iter().any(|name| name == row)) {
        for clock in *clocks {
            let ratio = samples.cell(row, [clock, clocks[0]]);
            table.add(row, [Some((*clock).into()), samples.both(row, clock, 0), ratio]);
        }
    }
    Ok(Report { tables: vec![table], ..Report::default() })
}

fn main() -> ExitCode {
    harness::main(child, parent)
}
