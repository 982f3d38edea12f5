//! PostgreSQL 19's `timing_clock_source = auto`, from `src/common/instr_time.c`,
//! `src/include/portability/instr_time.h` and `src/port/pg_cpu_x86.c` (PostgreSQL licence), as the
//! branch of the author of commit 294520c has them.
//!
//! x86-64 only. CPUID states no rate here, as on AMD's CPUs and in guests of QEMU's default model,
//! so the rate is measured until ten results in a row differ by less than 100 ppm, which usually
//! takes less than 0.1 ms. A duration is ticks times a multiplier with 14 bits after the point,
//! rounded down.

use std::rc::Rc;

use super::Clock;
use crate::thread::{ClockSource, Thread};

const SHIFT: u32 = 14;
const LONGEST: u64 = 50_000_000;
const ROUNDS: u32 = 1_000_000;
/// The rate is computed in one round of so many.
const SKIPS: u32 = 100;
const STABLE: u32 = 10;

pub(super) struct Postgres {
    thread: Rc<Thread>,
    start: u64,
    /// 0: `clock_gettime` answers.
    multiplier: u64,
}

/// Returns the rate in kHz, or 0.
fn measure(thread: &Rc<Thread>) -> u64 {
    let first_nanos = thread.monotonic();
    let first = thread.ticks_ordered();
    let mut last = first;
    let mut last_rate = 0.0;
    let mut stable = 0;
    for round in 0..ROUNDS {
        let nanos = thread.monotonic().wrapping_sub(first_nanos) as i64;
        let now = thread.ticks_ordered();
        if nanos >= LONGEST as i64 {
            break;
        }
        let ticks = now.wrapping_sub(first) as i64;
        if now == last || nanos <= 0 || ticks <= 0 || round % SKIPS != 0 {
            continue;
        }
        let rate = ticks as f64 / nanos as f64 * 1e6;
        if last_rate != 0.0 && (1.0 - rate / last_rate).abs() < 0.0001 {
            stable += 1;
        } else {
            stable = 0;
        }
        if stable >= STABLE {
            return rate as u64;
        }
        last = now;
        last_rate = rate;
    }
    0
}

impl Clock for Postgres {
    fn start(thread: &Rc<Thread>) -> Self {
        let can_use = thread.is_x86()
            && thread.is_invariant.get()
            && thread.clock_source.get() == ClockSource::Counter;
        let kilo_hertz = if can_use { measure(thread) } else { 0 };
        Self {
            thread: Rc::clone(thread),
            start: thread.ticks(),
            multiplier: (1_000_000_u64 << SHIFT)
                .checked_div(kilo_hertz)
                .unwrap_or(0),
        }
    }

    fn read(&self) -> u64 {
        if self.multiplier == 0 {
            return self.thread.monotonic();
        }
        let ticks = self.thread.ticks().wrapping_sub(self.start) as i64;
        ((i128::from(ticks) * i128::from(self.multiplier)) >> SHIFT) as u64
    }

    fn says(&self) -> String {
        if self.multiplier == 0 {
            "system"
        } else {
            "tsc"
        }
        .into()
    }
}
