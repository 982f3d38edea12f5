//! How far the clocks on the CPU's counter are from the kernel's.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use vdso_time_benches::calls;
use vdso_time_benches::harness::samples::{OURS, Samples, say};
use vdso_time_benches::pages::Table;
use vdso_time_counter as counter;

pub const ROW: &str = "accuracy";

/// The last one is compared with `CLOCK_REALTIME`, the others with `CLOCK_MONOTONIC`.
const CLOCKS: [&str; 5] = [
    OURS,
    "quanta",
    "minstant",
    "fastant",
    "vdso-time, wall clock",
];
const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p99.9", 0.999), ("largest", 1.0)];
const BEYOND: &str = "reads beyond the bound";

type Clock<'a> = &'a dyn Fn() -> i64;

/// Reads a clock between two reads of the kernel's. Returns how long that took, and the deviation.
fn compare([kernel, read]: [Clock; 2]) -> (i64, i64) {
    let (before, now, after) = (kernel(), read(), kernel());
    (after - before, now - i64::midpoint(before, after))
}

/// Compares each clock for so many seconds, and prints its quantiles as a child process does.
pub fn print(seconds: u64) {
    calls::settle();
    let zeros = (
        quanta::Instant::now(),
        minstant::Instant::now(),
        fastant::Instant::now(),
    );
    let monotonic: Clock = &|| vdso_time::Instant::now().as_nanos();
    let wall: [Clock; 2] = [&|| vdso_time::SystemTime::now().as_nanos() as i64, &|| {
        counter::CounterRealtime::now().as_nanos() as i64
    }];
    let clocks: [[Clock; 2]; 5] = [
        [monotonic, &|| counter::CounterMonotonic::now().as_nanos()],
        [monotonic, &|| zeros.0.elapsed().as_nanos() as i64],
        [monotonic, &|| zeros.1.elapsed().as_nanos() as i64],
        [monotonic, &|| zeros.2.elapsed().as_nanos() as i64],
        wall,
    ];
    let mut starts =
        clocks.map(|clock| (0..1000).map(|_| compare(clock)).min().unwrap_or_default());
    // Those of other crates have a zero of their own.
    (starts[0].1, starts[4].1) = (0, 0);
    let mut deviations = clocks.map(|_| Histogram::<u64>::new(3).expect("3 digits are allowed"));
    let mut beyond = 0;
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(seconds) {
        for ((clock, (quickest, zero)), deviations) in
            clocks.iter().zip(starts).zip(&mut deviations)
        {
            let (taken, deviation) = compare(*clock);
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
            say(
                ROW,
                &format!("{name} {quantile}"),
                deviations.value_at_quantile(at) as f64,
            );
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
