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
type Clock<'a> = &'a dyn Fn() -> i64;

/// A clock, and the kernel's clock with which it is compared.
struct Pair<'a> {
    name: &'static str,
    kernel: Clock<'a>,
    read: Clock<'a>,
    /// Whether the clock counts from a zero of its own.
    has_own_zero: bool,
}

impl Pair<'_> {
    /// Reads the clock between two reads of the kernel's. Returns how long that took, and the
    /// deviation.
    fn compare(&self) -> (i64, i64) {
        let before = (self.kernel)();
        let now = (self.read)();
        let after = (self.kernel)();
        let middle = i64::midpoint(before, after);
        (after - before, now - middle)
    }

    /// Returns how long the quickest comparison took, and the deviation that counts as none.
    fn start(&self) -> (i64, i64) {
        let tries = (0..1000).map(|_| self.compare());
        let (quickest, deviation) = tries.min().unwrap_or_default();
        if self.has_own_zero {
            (quickest, deviation)
        } else {
            (quickest, 0)
        }
    }
}

/// Compares each clock for so many seconds, and prints its quantiles as a child process does.
pub fn print(seconds: u64) {
    calls::settle();
    let quanta_zero = quanta::Instant::now();
    let minstant_zero = minstant::Instant::now();
    let fastant_zero = fastant::Instant::now();
    let pair = |name, read, has_own_zero| Pair {
        name,
        kernel: &|| vdso_time::Instant::now().as_nanos(),
        read,
        has_own_zero,
    };
    let own = pair(OURS, &|| counter::CounterMonotonic::now().as_nanos(), false);
    let quanta = || quanta_zero.elapsed().as_nanos() as i64;
    let minstant = || minstant_zero.elapsed().as_nanos() as i64;
    let fastant = || fastant_zero.elapsed().as_nanos() as i64;
    let wall = Pair {
        name: WALL,
        kernel: &|| vdso_time::SystemTime::now().as_nanos() as i64,
        read: &|| counter::CounterRealtime::now().as_nanos() as i64,
        has_own_zero: false,
    };
    let pairs = [
        own,
        pair(QUANTA, &quanta, true),
        pair(MINSTANT, &minstant, true),
        pair(FASTANT, &fastant, true),
        wall,
    ];
    let starts = pairs.each_ref().map(Pair::start);
    let histogram = Histogram::<u64>::new(3).expect("3 digits are allowed");
    let mut deviations = CLOCKS.map(|_| histogram.clone());
    let mut beyond = 0;
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(seconds) {
        for (index, pair) in pairs.iter().enumerate() {
            let (quickest, zero) = starts[index];
            let (taken, deviation) = pair.compare();
            // A comparison that took one and a half times as long was interrupted.
            if taken * 2 <= quickest * 3 {
                let distance = (deviation - zero).unsigned_abs();
                // The histogram grows.
                let _ = deviations[index].record(distance);
            }
        }
        let bound_before = counter::state().error_bound;
        let (taken, deviation) = pairs[0].compare();
        let bound_after = counter::state().error_bound;
        let bound = bound_before.max(bound_after).as_nanos() as i64;
        if deviation.abs() > bound + taken / 2 + 1 {
            beyond += 1;
        }
    }
    for (pair, deviations) in pairs.iter().zip(&deviations) {
        print_quantiles(pair.name, deviations);
    }
    let name = format!("{OURS} {BEYOND}");
    say(ROW, &name, f64::from(beyond));
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
    let mut names = Vec::from(QUANTILES.map(|(name, _)| name));
    names.push(BEYOND);
    Table::of("accuracy", "ns", CLOCKS, &names, |clock, name| {
        let contender = format!("{clock} {name}");
        samples.isolated(ROW, &contender, 0)
    })
}
