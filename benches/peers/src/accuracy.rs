//! How far the clocks on the CPU's counter are from `CLOCK_MONOTONIC`.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use vdso_time_benches::calls;
use vdso_time_benches::harness::samples::{OURS, Samples, say};
use vdso_time_benches::pages::Table;
use vdso_time_counter as counter;

pub const ROW: &str = "accuracy";

const CLOCKS: [&str; 4] = [OURS, "quanta", "minstant", "fastant"];
const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p99.9", 0.999), ("largest", 1.0)];
const BEYOND: &str = "reads beyond the bound";

fn kernel() -> i64 {
    vdso_time::Instant::now().as_nanos()
}

/// Reads a clock between two reads of the kernel's. Returns how long that took, and the deviation.
fn compare(read: &dyn Fn() -> i64) -> (i64, i64) {
    let (before, now, after) = (kernel(), read(), kernel());
    (after - before, now - i64::midpoint(before, after))
}

/// Compares each clock for so many seconds, and prints its quantiles as a child process does.
pub fn print(seconds: u64) {
    calls::settle();
    let zeros = (quanta::Instant::now(), minstant::Instant::now(), fastant::Instant::now());
    let clocks: [&dyn Fn() -> i64; 4] = [
        &|| counter::CounterMonotonic::now().as_nanos(),
        &|| zeros.0.elapsed().as_nanos() as i64,
        &|| zeros.1.elapsed().as_nanos() as i64,
        &|| zeros.2.elapsed().as_nanos() as i64,
    ];
    // The others have a zero of their own.
    let mut starts = clocks.map(|read| (0..1000).map(|_| compare(read)).min().unwrap_or_default());
    starts[0].1 = 0;
    let mut deviations = clocks.map(|_| Histogram::<u64>::new(3).expect("3 digits are allowed"));
    let mut beyond = 0;
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(seconds) {
        for ((read, (quickest, zero)), deviations) in clocks.iter().zip(starts).zip(&mut deviations) {
            let (taken, deviation) = compare(read);
            // Half as long again was interrupted.
            if taken * 2 <= quickest * 3 {
                // The histogram grows.
                let _ = deviations.record((deviation - zero).unsigned_abs());
            }
        }
        let bound = counter::state().error_bound;
        let (taken, deviation) = compare(clocks[0]);
        let bound = bound.max(counter::state().error_bound).as_nanos() as i64;
        beyond += u64::from(deviation.abs() > bound + taken / 2 + 1);
    }
    for (name, deviations) in CLOCKS.iter().zip(&deviations) {
        for (quantile, at) in QUANTILES {
            say(ROW, &format!("{name} {quantile}"), deviations.value_at_quantile(at) as f64);
        }
    }
    say(ROW, &format!("{OURS} {BEYOND}"), beyond as f64);
}

/// Returns the quantiles of each clock's deviation.
pub fn table(samples: &Samples) -> Table {
    let names = [QUANTILES[0].0, QUANTILES[1].0, QUANTILES[2].0, BEYOND];
    let value = |clock: &str, name| samples.isolated(ROW, &format!("{clock} {name}"), 0);
    Table::of("accuracy", "ns", CLOCKS, &names, value)
}
