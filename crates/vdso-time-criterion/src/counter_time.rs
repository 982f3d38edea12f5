//! [`CounterTime`]: the CPU's own counter, less what reading it takes.

use std::time::{Duration, Instant};

use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use vdso_time::counter::{self, Status};

use crate::fence;

/// The time by the CPU's counter: what is measured stands between two fences, and what an empty measurement takes is subtracted. That
/// is taken right behind each, for a CPU's pace changes from one moment to the next.
///
/// Its nanoseconds are those of [`counter::frequency`], to 30 parts in a billion or so.
#[derive(Clone, Copy, Debug)]
pub struct CounterTime {
    nanos_per_tick: f64,
    /// The ticks of an empty measurement that was not interrupted, at most.
    most: u64,
}

/// Ticks of the counter, in some measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticks {
    measured: u64,
    /// In as many empty ones.
    empty: u64,
}

/// The counter's rate is known after 10 ms of reads.
const PATIENCE: Duration = Duration::from_secs(2);

/// Empty measurements by which it is known what one takes.
const EMPTY: usize = 1001;

impl CounterTime {
    /// Waits until the counter's rate is known, some 10 ms.
    ///
    /// # Errors
    /// Why the counter cannot be used here; [`VdsoTime`](crate::VdsoTime) can.
    pub fn new() -> Result<Self, Status> {
        let since = Instant::now();
        let hertz = loop {
            let _ = counter::monotonic();
            match (counter::status(), counter::frequency()) {
                (Status::Used | Status::Stale, Some(hertz)) => break hertz,
                (Status::Calibrating | Status::Updating | Status::Stale, _) if since.elapsed() < PATIENCE => {
                }
                (status, _) => return Err(status),
            }
        };
        let mut empty: Vec<u64> = (0..EMPTY).map(|_| end(start())).collect();
        empty.sort_unstable();
        Ok(Self { nanos_per_tick: 1e9 / hertz as f64, most: empty[EMPTY / 2] * 3 / 2 })
    }
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
    fn end(&self, started: u64) -> Ticks {
        let measured = end(started);
        Ticks { measured, empty: end(start()).min(self.most) }
    }

    #[inline]
    fn add(&self, one: &Ticks, other: &Ticks) -> Ticks {
        Ticks { measured: one.measured + other.measured, empty: one.empty + other.empty }
    }

    fn zero(&self) -> Ticks {
        Ticks::default()
    }

    /// Nanoseconds; 0 where the measurements took no longer than the empty ones.
    fn to_f64(&self, value: &Ticks) -> f64 {
        value.measured.saturating_sub(value.empty) as f64 * self.nanos_per_tick
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        WallTime.formatter()
    }
}
