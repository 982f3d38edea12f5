//! Redis's `getMonotonicUs()`, from `src/monotonic.c` at commit 04a952e3 (RSALv2, SSPLv1 or
//! AGPLv3), which has #14676 and #15018.
//!
//! The ticks are divided by whole ticks per microsecond. On x86 the machine has the clock source
//! `tsc` and, as AMD's, no frequency in its name, so the median of three samples counts.

use std::rc::Rc;

use super::Clock;
use crate::thread::{ClockSource, Thread};
use crate::world::MILLI;

pub(super) struct Redis {
    thread: Rc<Thread>,
    /// 0: `clock_gettime` answers.
    ticks_per_micro: u64,
}

/// Returns the whole ticks per microsecond of a sleep of 10 ms, if the counter did not go back.
fn sample(thread: &Rc<Thread>) -> Option<u64> {
    let first_nanos = thread.monotonic();
    let start = thread.ticks();
    thread.sleep(10 * MILLI);
    let nanos = thread.monotonic().checked_sub(first_nanos)?;
    let end = thread.ticks();
    if nanos == 0 || end <= start {
        return None;
    }
    let ticks_per_micro = (end - start).wrapping_mul(1_000) / nanos;
    (ticks_per_micro > 0).then_some(ticks_per_micro)
}

fn measure(thread: &Rc<Thread>) -> u64 {
    let mut samples: Vec<u64> = (0..3).filter_map(|_| sample(thread)).collect();
    samples.sort_unstable();
    match *samples {
        [] => 0,
        [low, high] => u64::midpoint(low, high),
        ref samples => samples[samples.len() / 2],
    }
}

impl Clock for Redis {
    fn start(thread: &Rc<Thread>) -> Self {
        let ticks_per_micro = if !thread.is_x86() {
            thread.hertz / 1_000_000
        } else if thread.clock_source.get() == ClockSource::Counter {
            measure(thread)
        } else {
            0
        };
        Self {
            thread: Rc::clone(thread),
            ticks_per_micro,
        }
    }

    fn read(&self) -> u64 {
        if self.ticks_per_micro == 0 {
            return self.thread.monotonic() / 1_000 * 1_000;
        }
        self.thread.ticks() / self.ticks_per_micro * 1_000
    }

    fn says(&self) -> String {
        match (self.ticks_per_micro, self.thread.is_x86()) {
            (0, _) => "POSIX clock_gettime".into(),
            (rate, true) => format!("X86 TSC @ {rate} ticks/us"),
            (rate, false) => format!("ARM CNTVCT @ {rate} ticks/us"),
        }
    }
}
