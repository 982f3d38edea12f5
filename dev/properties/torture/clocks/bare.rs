//! The two ends: the kernel's own clock, and the counter with a rate that was measured once.

use std::rc::Rc;

use super::Clock;
use crate::thread::Thread;
use crate::world::MILLI;

/// `clock_gettime(CLOCK_MONOTONIC)`, answered in the vDSO.
pub(super) struct Vdso(Rc<Thread>);

impl Clock for Vdso {
    fn start(thread: &Rc<Thread>) -> Self {
        Self(Rc::clone(thread))
    }

    fn read(&self) -> u64 {
        self.0.monotonic()
    }

    fn says(&self) -> String {
        String::new()
    }
}

/// The clock that many programs write themselves: the rate over 100 ms, as a floating-point number.
pub(super) struct BareCounter {
    thread: Rc<Thread>,
    start: u64,
    nanos_per_tick: f64,
}

impl Clock for BareCounter {
    fn start(thread: &Rc<Thread>) -> Self {
        let first_nanos = thread.monotonic();
        let start = thread.ticks();
        thread.sleep(100 * MILLI);
        let nanos = thread.monotonic() - first_nanos;
        let ticks = thread.ticks().wrapping_sub(start);
        Self {
            thread: Rc::clone(thread),
            start,
            nanos_per_tick: nanos as f64 / ticks as f64,
        }
    }

    fn read(&self) -> u64 {
        let ticks = self.thread.ticks().wrapping_sub(self.start) as i64;
        (ticks as f64 * self.nanos_per_tick) as i64 as u64
    }

    fn says(&self) -> String {
        String::new()
    }
}
