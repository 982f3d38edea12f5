//! quanta 0.13.0, from `src/lib.rs`, `src/stats.rs` and `src/detection.rs` (MIT).
//!
//! The counter is used on x86-64 if CPUID says that it is invariant, and always on arm64; the clock
//! source is not looked at. The calibration compares both clocks each microsecond until the mean
//! difference and its error are below 10 ns, after 500 rounds at the earliest and 200 ms at the
//! latest. Each round takes the rate from the start of the calibration.

use std::rc::Rc;

use super::Clock;
use crate::thread::Thread;

const ROUNDS: u32 = 500;
const LARGEST_ERROR: f64 = 10.0;
const LONGEST: u64 = 200_000_000;
const ROUND: u64 = 1_000;

pub(super) struct Quanta {
    thread: Rc<Thread>,
    scale: Option<Scale>,
}

struct Scale {
    nanos: u64,
    ticks: u64,
    factor: u64,
    shift: u32,
}

impl Scale {
    /// Takes the rate from the start until now, with a power of two as the divisor.
    fn adjust(&mut self, nanos: u64, ticks: u64) {
        let nanos = nanos.wrapping_sub(self.nanos);
        let ticks = ticks.wrapping_sub(self.ticks);
        let divisor = ticks.checked_next_power_of_two().unwrap_or(1 << 63);
        self.factor = (nanos as f64 * (divisor as f64 / ticks as f64)) as u64;
        self.shift = divisor.trailing_zeros();
    }

    /// A tick before the start gives the time of the start.
    fn nanos_of(&self, ticks: u64) -> u64 {
        let passed = ticks.saturating_sub(self.ticks);
        let scaled = (u128::from(passed) * u128::from(self.factor)) >> self.shift;
        (scaled as u64).wrapping_add(self.nanos)
    }

    fn measure(thread: &Rc<Thread>) -> Self {
        let deadline = thread.monotonic() + LONGEST;
        let mut scale = Self {
            nanos: thread.monotonic(),
            ticks: thread.ticks(),
            factor: 1,
            shift: 0,
        };
        let mut errors = Errors::default();
        loop {
            let target = thread.monotonic() + ROUND;
            let mut last = 0;
            while last < target {
                last = thread.monotonic();
            }
            if last >= deadline {
                return scale;
            }
            let nanos = thread.monotonic();
            scale.adjust(nanos, thread.ticks());
            let reference = thread.monotonic();
            let nanos = scale.nanos_of(thread.ticks());
            errors.add(nanos as f64 - reference as f64);
            if errors.are_small() {
                return scale;
            }
        }
    }
}

/// The mean of the differences and its standard error.
#[derive(Default)]
struct Errors {
    count: u32,
    mean: f64,
    squares: f64,
}

impl Errors {
    fn add(&mut self, error: f64) {
        self.count += 1;
        let old_mean = self.mean;
        self.mean += (error - old_mean) / f64::from(self.count);
        self.squares += (error - old_mean) * (error - self.mean);
    }

    fn are_small(&self) -> bool {
        if self.count <= ROUNDS {
            return false;
        }
        let count = f64::from(self.count);
        let of_mean = (self.squares / (count - 1.0) / count).sqrt();
        self.mean.abs() + of_mean < LARGEST_ERROR && of_mean <= self.mean.abs()
    }
}

impl Clock for Quanta {
    fn start(thread: &Rc<Thread>) -> Self {
        let can_use = !thread.is_x86() || thread.is_invariant.get();
        let scale = if can_use {
            Some(Scale::measure(thread))
        } else {
            None
        };
        Self {
            thread: Rc::clone(thread),
            scale,
        }
    }

    fn read(&self) -> u64 {
        match &self.scale {
            Some(scale) => scale.nanos_of(self.thread.ticks()),
            None => self.thread.monotonic(),
        }
    }

    fn says(&self) -> String {
        String::new()
    }
}
