//! How far the counter clocks go from `CLOCK_MONOTONIC`, all beside each other, and whether they step back.

use std::time::Duration;

use vdso_time::{ClockId, clock_gettime, counter};
use vdso_time_benches::harness::report::Table;

use crate::rows::quanta_clock;

/// A clock, whose nanoseconds count from anywhere.
struct Clock {
    name: &'static str,
    read: Box<dyn Fn() -> i64>,
    /// Its time less the kernel's, at the first read.
    offset: Option<i64>,
    latest: i64,
    back: u64,
    deviations: Vec<u32>,
}

/// The deviations that a sorted list must hold.
const MOST: usize = 1 << 20;

fn clocks() -> Vec<Clock> {
    let clock = |name, read: Box<dyn Fn() -> i64>| Clock {
        name,
        read,
        offset: None,
        latest: i64::MIN,
        back: 0,
        deviations: Vec::new(),
    };
    let quanta = quanta_clock();
    let zero = quanta.now();
    let (minstant, fastant) = (minstant::Instant::now(), fastant::Instant::now());
    let nanos = |time: Duration| time.as_nanos() as i64;
    vec![
        clock("vdso-time", Box::new(|| counter::monotonic_ordered() as i64)),
        clock("quanta", Box::new(move || nanos(quanta.now().duration_since(zero)))),
        clock("minstant", Box::new(move || nanos(minstant::Instant::now().duration_since(minstant)))),
        clock("fastant", Box::new(move || nanos(fastant::Instant::now().duration_since(fastant)))),
    ]
}

fn kernel() -> Option<i64> {
    let now = clock_gettime(ClockId::MONOTONIC).ok()?;
    Some(now.tv_sec * 1_000_000_000 + now.tv_nsec)
}

/// Reads until the counter is used, or will not be.
pub fn settle() {
    let start = std::time::Instant::now();
    while counter::status() != counter::Status::Used && start.elapsed() < Duration::from_millis(200) {
        let _ = counter::monotonic();
    }
}

/// Reads each clock between two reads of the kernel's, for so long.
pub fn measure(length: Duration) -> Option<Table> {
    settle();
    let mut clocks = clocks();
    let start = kernel()?;
    // What takes half as long again as the quickest was interrupted, and says nothing.
    let quickest = (0..1000)
        .filter_map(|_| {
            Some(
                -kernel()? + {
                    (clocks[0].read)();
                    kernel()?
                },
            )
        })
        .min()?;
    while kernel()? - start < length.as_nanos() as i64 {
        for clock in &mut clocks {
            let before = kernel()?;
            let now = (clock.read)();
            let after = kernel()?;
            clock.back += u64::from(now < clock.latest);
            clock.latest = now;
            if (after - before) * 2 > quickest * 3 {
                continue;
            }
            let difference = now - (before + (after - before) / 2);
            let offset = *clock.offset.get_or_insert(difference);
            if clock.deviations.len() < MOST {
                clock.deviations.push((difference - offset).unsigned_abs().min(u64::from(u32::MAX)) as u32);
            }
        }
        // So many reads that the list lasts.
        std::thread::sleep(Duration::from_micros(20));
    }
    let rows = clocks.into_iter().map(row).collect();
    let head = ["clock", "p50, ns", "p99, ns", "p99.9, ns", "most, ns", "steps back", "reads"];
    Some(Table { name: "peers-deviation", head: head.map(str::to_string).to_vec(), rows })
}

fn row(mut clock: Clock) -> Vec<String> {
    clock.deviations.sort_unstable();
    let count = clock.deviations.len();
    let at = |permille: usize| {
        clock.deviations.get((count * permille / 1000).min(count.saturating_sub(1))).copied().unwrap_or(0)
    };
    let mut cells = vec![clock.name.to_string()];
    cells.extend([500, 990, 999, 1000].map(|permille| at(permille).to_string()));
    cells.extend([clock.back.to_string(), count.to_string()]);
    cells
}
