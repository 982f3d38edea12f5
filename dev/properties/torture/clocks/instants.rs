//! minstant 0.1.7 and fastant 0.1.11, from `src/tsc_now.rs`, `src/instant.rs` and `src/lib.rs`
//! (MIT). Both calibrate before `main` and differ in when they use the counter.
//!
//! Two rates of more than 10 ms each must agree to 10 ppm. Without the counter, the *wall clock*
//! answers.

use std::rc::Rc;

use super::Clock;
use crate::thread::{ClockSource, Thread};

const SPAN: u64 = 10_000_000;

struct Instants {
    thread: Rc<Thread>,
    counter: Option<Counter>,
}

struct Counter {
    nanos_per_tick: f64,
    /// The tick of the clock's zero.
    anchor: u64,
}

/// Returns the ticks per second in the next 10 ms, and the two clocks at their end.
fn rate(thread: &Rc<Thread>) -> (f64, u64, u64) {
    let first_nanos = thread.monotonic();
    let first = thread.ticks();
    loop {
        let nanos = thread.monotonic();
        let ticks = thread.ticks();
        let passed = nanos.saturating_sub(first_nanos);
        if passed > SPAN {
            let rate = ticks.wrapping_sub(first) as f64 * 1e9 / passed as f64;
            return (rate, nanos, ticks);
        }
    }
}

impl Counter {
    fn measure(thread: &Rc<Thread>) -> Self {
        let start = thread.monotonic();
        let mut old_rate = 0.0;
        loop {
            let (hertz, nanos, ticks) = rate(thread);
            if (hertz - old_rate).abs() / hertz < 0.00001 {
                let passed = hertz.round() * nanos.saturating_sub(start) as f64 / 1e9;
                return Self {
                    nanos_per_tick: 1e9 / hertz.round(),
                    anchor: ticks.wrapping_sub(passed.ceil() as u64),
                };
            }
            old_rate = hertz;
        }
    }
}

impl Instants {
    fn new(thread: &Rc<Thread>, can_use: bool) -> Self {
        Self {
            thread: Rc::clone(thread),
            counter: (thread.is_x86() && can_use).then(|| Counter::measure(thread)),
        }
    }

    fn read(&self) -> u64 {
        match &self.counter {
            Some(counter) => {
                let ticks = self.thread.ticks().wrapping_sub(counter.anchor) as i64;
                (ticks as f64 * counter.nanos_per_tick) as i64 as u64
            }
            None => self.thread.realtime() as u64,
        }
    }

    fn says(&self) -> String {
        format!("is_tsc_available() == {}", self.counter.is_some())
    }
}

/// Uses the counter if `available_clocksource` has `tsc`. The kernel takes the name away only if it
/// found the counter unstable.
pub(super) struct Minstant(Instants);

impl Clock for Minstant {
    fn start(thread: &Rc<Thread>) -> Self {
        let has_tsc = thread.clock_source.get() != ClockSource::Hpet;
        Self(Instants::new(thread, has_tsc))
    }

    fn read(&self) -> u64 {
        self.0.read()
    }

    fn says(&self) -> String {
        self.0.says()
    }
}

/// Uses the counter if CPUID says that it is invariant, or if the clock source is `tsc`.
pub(super) struct Fastant(Instants);

impl Clock for Fastant {
    fn start(thread: &Rc<Thread>) -> Self {
        let is_tsc = thread.clock_source.get() == ClockSource::Counter;
        Self(Instants::new(thread, thread.is_invariant.get() || is_tsc))
    }

    fn read(&self) -> u64 {
        self.0.read()
    }

    fn says(&self) -> String {
        self.0.says()
    }
}
