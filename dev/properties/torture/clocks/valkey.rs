//! Valkey's `getMonotonicUs()`, from `src/monotonic.c` (BSD-3-Clause): as it was in 9.1.0, and at
//! commit 0148137a, which has #4346 and the check of #4707.
//!
//! On x86 the multiplier has 24 bits after the point and is rounded down: at 2.65 GHz it is 6331,
//! and one less makes the clock 158 ppm slower. The least of three samples counts, which is the
//! fastest counter. On arm64 the ticks are divided by whole MHz. Neither version looks again.

use std::rc::Rc;

use super::Clock;
use crate::thread::{ClockSource, Thread};
use crate::world::MILLI;

const SHIFT: u32 = 24;
const SAMPLES: u32 = 3;

#[derive(Clone, Copy)]
enum Method {
    Multiply(u64),
    Divide(u64),
    Posix,
}

struct Monotonic {
    thread: Rc<Thread>,
    method: Method,
}

impl Monotonic {
    fn new(thread: &Rc<Thread>, method: Method) -> Self {
        Self {
            thread: Rc::clone(thread),
            method,
        }
    }

    fn on_arm(thread: &Rc<Thread>) -> Method {
        match thread.hertz / 1_000_000 {
            0 => Method::Posix,
            mega_hertz => Method::Divide(mega_hertz),
        }
    }

    fn micros(&self) -> u64 {
        match self.method {
            Method::Multiply(multiplier) => {
                let product = u128::from(self.thread.ticks()) * u128::from(multiplier);
                (product >> SHIFT) as u64
            }
            Method::Divide(ticks_per_micro) => self.thread.ticks() / ticks_per_micro,
            Method::Posix => self.thread.monotonic() / 1_000,
        }
    }

    /// Returns `monotonic_clock` of `INFO server`.
    fn info(&self) -> String {
        match self.method {
            Method::Multiply(multiplier) => {
                let ticks_per_micro = f64::from(1 << SHIFT) / multiplier as f64;
                format!("X86 TSC @ {ticks_per_micro:.2} ticks/us")
            }
            Method::Divide(ticks_per_micro) => format!("ARM CNTVCT @ {ticks_per_micro} ticks/us"),
            Method::Posix => "POSIX clock_gettime".into(),
        }
    }
}

/// One measurement: the ticks and the microseconds of a sleep of 10 ms.
struct Sample {
    start: u64,
    end: u64,
    micros: u64,
}

impl Sample {
    fn take(thread: &Rc<Thread>) -> Self {
        let first_nanos = thread.monotonic();
        let start = thread.ticks();
        thread.sleep(10 * MILLI);
        let end = thread.ticks();
        let nanos = thread.monotonic().saturating_sub(first_nanos);
        Self {
            start,
            end,
            micros: nanos / 1_000,
        }
    }

    /// The difference of the ticks wraps if the second CPU is behind.
    fn multiplier(&self) -> u64 {
        let ticks = self.end.wrapping_sub(self.start);
        let ticks_per_micro = ticks as f64 / self.micros as f64;
        (f64::from(1 << SHIFT) / ticks_per_micro) as u64
    }
}

/// 9.1.0 looks at no clock source and takes every sample.
pub(super) struct Valkey910(Monotonic);

impl Clock for Valkey910 {
    fn start(thread: &Rc<Thread>) -> Self {
        if !thread.is_x86() {
            return Self(Monotonic::new(thread, Monotonic::on_arm(thread)));
        }
        let samples = (0..SAMPLES).map(|_| Sample::take(thread).multiplier());
        let least = samples.min().expect("three samples");
        Self(Monotonic::new(thread, Method::Multiply(least)))
    }

    fn read(&self) -> u64 {
        self.0.micros() * 1_000
    }

    fn says(&self) -> String {
        self.0.info()
    }
}

/// Today's version needs the clock source `tsc`, and drops samples that went back and multipliers
/// of 0.
pub(super) struct ValkeyToday(Monotonic);

impl ValkeyToday {
    fn on_x86(thread: &Rc<Thread>) -> Method {
        if thread.clock_source.get() != ClockSource::Counter {
            return Method::Posix;
        }
        let samples = (0..SAMPLES).map(|_| Sample::take(thread));
        let multipliers = samples
            .filter(|sample| sample.end > sample.start && sample.micros > 0)
            .map(|sample| sample.multiplier());
        match multipliers.filter(|&multiplier| multiplier > 0).min() {
            Some(least) => Method::Multiply(least),
            None => Method::Posix,
        }
    }
}

impl Clock for ValkeyToday {
    fn start(thread: &Rc<Thread>) -> Self {
        let method = if thread.is_x86() {
            Self::on_x86(thread)
        } else {
            Monotonic::on_arm(thread)
        };
        Self(Monotonic::new(thread, method))
    }

    fn read(&self) -> u64 {
        self.0.micros() * 1_000
    }

    fn says(&self) -> String {
        self.0.info()
    }
}
