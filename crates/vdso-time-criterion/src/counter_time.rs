//! [`CounterTime`]: the CPU's own counter, less what reading it takes.

use std::time::{Duration, Instant};

use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use vdso_time::counter::{self, Status};

use crate::fence;

/// The time by the CPU's counter: what is measured stands between two fences, and what an empty measurement takes is subtracted.
///
/// Its nanoseconds are those of [`counter::frequency`], to 30 parts in a billion or so.
#[derive(Clone, Copy, Debug)]
pub struct CounterTime {
    nanos_per_tick: f64,
    /// The ticks of an empty measurement.
    own: f64,
}

/// Ticks of the counter, in so many measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticks {
    ticks: u64,
    measurements: u64,
}

/// The counter's rate is known after 10 ms of reads.
const PATIENCE: Duration = Duration::from_secs(2);

/// Empty measurements by which their ticks are found.
const EMPTY: usize = 10_000;

impl CounterTime {
    /// Waits until the counter's rate is known, some 10 ms, and finds what an empty measurement takes.
    ///
    /// # Errors
    /// Why the counter cannot be used here; [`VdsoTime`](crate::VdsoTime) can.
    pub fn new() -> Result<Self, Status> {
        let start = Instant::now();
        let hertz = loop {
            let _ = counter::monotonic();
            match (counter::status(), counter::frequency()) {
                (Status::Used | Status::Stale, Some(hertz)) => break hertz,
                (Status::Calibrating | Status::Claimed | Status::Stale, _) if start.elapsed() < PATIENCE => {}
                (status, _) => return Err(status),
            }
        };
        Ok(Self { nanos_per_tick: 1e9 / hertz as f64, own: empty() })
    }

    /// The nanoseconds of an empty measurement, which are subtracted from each.
    #[must_use]
    pub fn own_nanos(&self) -> f64 {
        self.own * self.nanos_per_tick
    }
}

/// The mean ticks of an empty measurement. The mean, for a counter may step by many ticks at once, so that no single measurement is
/// right; but without those that were interrupted.
fn empty() -> f64 {
    let mut seen: Vec<u64> = (0..EMPTY).map(|_| end(start())).collect();
    seen.sort_unstable();
    let limit = seen[EMPTY / 2].saturating_mul(3) / 2;
    let calm = &seen[..seen.partition_point(|&ticks| ticks <= limit)];
    calm.iter().sum::<u64>() as f64 / calm.len() as f64
}

#[inline]
fn start() -> u64 {
    let ticks = counter::ticks_ordered();
    fence::begin();
    ticks
}

#[inline]
fn end(start: u64) -> u64 {
    counter::ticks_ordered().saturating_sub(start)
}

impl Measurement for CounterTime {
    type Intermediate = u64;
    type Value = Ticks;

    #[inline]
    fn start(&self) -> u64 {
        start()
    }

    #[inline]
    fn end(&self, start: u64) -> Ticks {
        Ticks { ticks: end(start), measurements: 1 }
    }

    #[inline]
    fn add(&self, one: &Ticks, other: &Ticks) -> Ticks {
        Ticks { ticks: one.ticks + other.ticks, measurements: one.measurements + other.measurements }
    }

    fn zero(&self) -> Ticks {
        Ticks::default()
    }

    /// Nanoseconds; 0 where a measurement took no longer than an empty one.
    fn to_f64(&self, value: &Ticks) -> f64 {
        let ticks = value.ticks as f64 - self.own * value.measurements as f64;
        ticks.max(0.0) * self.nanos_per_tick
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        WallTime.formatter()
    }
}
