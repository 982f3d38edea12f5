//! How far the clocks on the CPU's counter are from the kernel's.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use vdso_time_benches::calls;
use vdso_time_benches::harness::samples::{OURS, Samples, say};
use vdso_time_benches::pages::Table;
use vdso_time_counter as counter;

pub const ROW: &str = "accuracy";

const QUANTA: &str = "quanta";
const MINSTANT: &str = "minstant";
const FASTANT: &str = "fastant";
/// This one is compared with `CLOCK_REALTIME`, and the others with `CLOCK_MONOTONIC`.
const WALL: &str = "vdso-time, wall clock";

const CLOCKS: [&str; 5] = [OURS, QUANTA, MINSTANT, FASTANT, WALL];
const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p99.9", 0.999), ("largest", 1.0)];
const BEYOND: &str = "reads beyond the bound";

/// Reads a clock, in nanoseconds.
type Read<'a> = &'a dyn Fn() -> i64;

/// A clock, and the kernel's clock with which it is compared.
struct Pair<'a> {
    name: &'static str,
    kernel: Read<'a>,
    read: Read<'a>,
    /// Whether the clock counts from a zero of its own.
    has_own_zero: bool,
}

/// A read of a clock between two reads of the kernel's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Comparison {
    /// The time between the kernel's two reads.
    taken: i64,
    /// How far the clock is ahead of the middle of these reads.
    deviation: i64,
}

impl Pair<'_> {
    fn compare(&self) -> Comparison {
        let before = (self.kernel)();
        let now = (self.read)();
        let after = (self.kernel)();
        let middle = i64::midpoint(before, after);
        Comparison {
            taken: after - before,
            deviation: now - middle,
        }
    }

    /// Returns the quickest comparison, with the deviation that counts as none.
    fn start(&self) -> Comparison {
        let mut quickest = self.compare();
        for _ in 1..1000 {
            let comparison = self.compare();
            quickest = quickest.min(comparison);
        }
        if !self.has_own_zero {
            quickest.deviation = 0;
        }
        quickest
    }
}

/// The deviations of a clock.
struct Series<'a> {
    pair: Pair<'a>,
    /// The comparison whose deviation counts as none.
    start: Comparison,
    deviations: Histogram<u64>,
}

impl<'a> Series<'a> {
    fn new(pair: Pair<'a>) -> Self {
        let start = pair.start();
        let histogram = Histogram::new(3);
        Self {
            pair,
            start,
            deviations: histogram.expect("3 digits are allowed"),
        }
    }

    /// Compares the clock once more.
    fn add(&mut self) {
        let comparison = self.pair.compare();
        // A comparison that took one and a half times as long was interrupted.
        if comparison.taken * 2 > self.start.taken * 3 {
            return;
        }
        let deviation = comparison.deviation - self.start.deviation;
        let distance = deviation.unsigned_abs();
        // The histogram grows.
        let _ = self.deviations.record(distance);
    }
}

fn kernel_monotonic() -> i64 {
    vdso_time::Instant::now().as_nanos()
}

fn kernel_realtime() -> i64 {
    vdso_time::SystemTime::now().as_nanos() as i64
}

fn counter_monotonic() -> i64 {
    counter::CounterMonotonic::now().as_nanos()
}

fn counter_realtime() -> i64 {
    counter::CounterRealtime::now().as_nanos() as i64
}

/// Compares each clock for so many seconds, and prints its quantiles as a child process does.
pub fn print(seconds: u64) {
    calls::settle();
    let quanta_zero = quanta::Instant::now();
    let minstant_zero = minstant::Instant::now();
    let fastant_zero = fastant::Instant::now();
    let ours = Pair {
        name: OURS,
        kernel: &kernel_monotonic,
        read: &counter_monotonic,
        has_own_zero: false,
    };
    let quanta = Pair {
        name: QUANTA,
        kernel: &kernel_monotonic,
        read: &|| quanta_zero.elapsed().as_nanos() as i64,
        has_own_zero: true,
    };
    let minstant = Pair {
        name: MINSTANT,
        kernel: &kernel_monotonic,
        read: &|| minstant_zero.elapsed().as_nanos() as i64,
        has_own_zero: true,
    };
    let fastant = Pair {
        name: FASTANT,
        kernel: &kernel_monotonic,
        read: &|| fastant_zero.elapsed().as_nanos() as i64,
        has_own_zero: true,
    };
    let wall = Pair {
        name: WALL,
        kernel: &kernel_realtime,
        read: &counter_realtime,
        has_own_zero: false,
    };
    let pairs = [ours, quanta, minstant, fastant, wall];
    let mut all = pairs.map(Series::new);
    let mut beyond = 0;
    let length = Duration::from_secs(seconds);
    let start = Instant::now();
    while start.elapsed() < length {
        for series in &mut all {
            series.add();
        }
        if is_beyond_the_bound(&all[0].pair) {
            beyond += 1;
        }
    }
    for series in &all {
        print_quantiles(series.pair.name, &series.deviations);
    }
    let name = format!("{OURS} {BEYOND}");
    say(ROW, &name, f64::from(beyond));
}

/// Returns whether our clock is further from the kernel's than it says.
fn is_beyond_the_bound(ours: &Pair) -> bool {
    let before = counter::state().error_bound;
    let comparison = ours.compare();
    let after = counter::state().error_bound;
    let bound = before.max(after).as_nanos() as i64;
    let allowed = bound + comparison.taken / 2 + 1;
    comparison.deviation.abs() > allowed
}

/// Prints the quantiles of a clock's deviation.
fn print_quantiles(clock: &str, deviations: &Histogram<u64>) {
    for (quantile, at) in QUANTILES {
        let nanos = deviations.value_at_quantile(at);
        let name = format!("{clock} {quantile}");
        say(ROW, &name, nanos as f64);
    }
}

/// Returns the quantiles of each clock's deviation.
pub fn table(samples: &Samples) -> Table {
    let mut names = Vec::new();
    for (name, _) in QUANTILES {
        names.push(name);
    }
    names.push(BEYOND);
    Table::of("accuracy", "ns", CLOCKS, &names, |clock, name| {
        let contender = format!("{clock} {name}");
        samples.isolated(ROW, &contender, 0)
    })
}
