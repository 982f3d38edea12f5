//! How far the counter clocks deviate from `CLOCK_MONOTONIC`, and whether they step back.

use std::time::Duration;

use vdso_time::{ClockId, Timespec, clock_gettime, counter};
use vdso_time_benches::harness::document::Table;
use vdso_time_benches::harness::stats::quantile;

use crate::rows::leak;

/// A clock, whose zero is anywhere.
struct Clock {
    name: &'static str,
    read: Box<dyn Fn() -> i64>,
    /// Its time less the kernel's, at the first read.
    offset: Option<i64>,
    latest: i64,
    steps_back: u64,
    /// The shortest time between the kernel's reads before and after.
    quickest: i64,
    deviations: Vec<f64>,
}

fn clocks() -> Vec<Clock> {
    let clock = |name, read: Box<dyn Fn() -> i64>| Clock {
        name,
        read,
        offset: None,
        latest: i64::MIN,
        steps_back: 0,
        quickest: i64::MAX,
        deviations: Vec::new(),
    };
    let quanta = leak(quanta::Clock::new());
    let zero = quanta.now();
    let nanos = |time: Duration| time.as_nanos() as i64;
    vec![
        clock("vdso-time", Box::new(|| counter::monotonic_ordered() as i64)),
        clock("quanta", Box::new(move || nanos(quanta.now().duration_since(zero)))),
    ]
}

fn kernel() -> i64 {
    clock_gettime(ClockId::MONOTONIC).map_or(0, Timespec::as_nanos)
}

impl Clock {
    fn compare(&mut self, is_warm_up: bool) {
        let (before, now, after) = (kernel(), (self.read)(), kernel());
        self.steps_back += u64::from(now < self.latest);
        self.latest = now;
        let width = after - before;
        if is_warm_up {
            self.quickest = self.quickest.min(width);
        } else if width * 2 <= self.quickest * 3 {
            // A wider read was interrupted.
            let difference = now - (before + width / 2);
            let offset = *self.offset.get_or_insert(difference);
            self.deviations.push((difference - offset).unsigned_abs() as f64);
        }
    }
}

/// Reads each clock between two reads of the kernel's, in turns.
pub fn measure(length: Duration) -> Table {
    let mut clocks = clocks();
    for clock in &mut clocks {
        (0..1000).for_each(|_| clock.compare(true));
    }
    let start = kernel();
    while kernel() - start < length.as_nanos() as i64 {
        for clock in &mut clocks {
            clock.compare(false);
        }
    }
    let head = ["deviation, ns", "p50", "p99.9", "largest", "above 10 us", "steps back", "reads"];
    let mut table = Table::new("peers-deviation", &head);
    for clock in &clocks {
        let of = |at| format!("{:.0}", quantile(&clock.deviations, at));
        let large = clock.deviations.iter().filter(|nanos| **nanos > 10_000.0).count();
        let counts = [large.to_string(), clock.steps_back.to_string(), clock.deviations.len().to_string()];
        table.rows.push([vec![clock.name.into(), of(0.5), of(0.999), of(1.0)], counts.to_vec()].concat());
    }
    table
}
