//! The clocks that are compared.

use std::time::Duration;

use vdso_time::{ClockId, clock_gettime};
use vdso_time_benches::harness::samples::OURS;
use vdso_time_counter::{self as counter, State, Status};

/// A clock, and the kernel's clock that it follows.
pub struct Clock {
    pub name: &'static str,
    pub kernel: ClockId,
    /// Nanoseconds since any time.
    pub read: Box<dyn Fn() -> i64>,
}

impl Clock {
    /// The kernel's clock in nanoseconds.
    pub fn kernel(&self) -> i64 {
        clock_gettime(self.kernel).map_or(0, |time| time.as_nanos() as i64)
    }

    /// What the clock says of its accuracy. Only this crate's does.
    pub fn state(&self) -> Option<(u64, bool)> {
        let State { error_bound, status, .. } = Some(counter::state()).filter(|_| self.name == OURS)?;
        // The wall clock can also miss a step, which only this bound includes.
        let is_wall = self.kernel == ClockId::REALTIME;
        let bound = if is_wall { counter::realtime_error_bound() } else { error_bound };
        Some((bound.as_nanos() as u64, status == Status::Used))
    }
}

/// Returns the clocks, calibrated, that follow the kernel's.
pub fn following(kernel: ClockId) -> Vec<Clock> {
    let clock = |name, read: Box<dyn Fn() -> i64>| Clock { name, kernel, read };
    if kernel == ClockId::REALTIME {
        let anchors = (minstant::Anchor::new(), fastant::Anchor::new());
        return vec![
            clock(OURS, Box::new(|| counter::realtime().as_nanos() as i64)),
            clock("minstant", Box::new(move || minstant::Instant::now().as_unix_nanos(&anchors.0) as i64)),
            clock("fastant", Box::new(move || fastant::Instant::now().as_unix_nanos(&anchors.1) as i64)),
        ];
    }
    let nanos = |time: Duration| time.as_nanos() as i64;
    let quanta = quanta::Clock::new();
    let zeros = (quanta.now(), minstant::Instant::now(), fastant::Instant::now());
    vec![
        clock(OURS, Box::new(|| counter::CounterMonotonic::now().as_nanos())),
        clock("quanta", Box::new(move || nanos(quanta.now().duration_since(zeros.0)))),
        clock("minstant", Box::new(move || nanos(minstant::Instant::now().duration_since(zeros.1)))),
        clock("fastant", Box::new(move || nanos(fastant::Instant::now().duration_since(zeros.2)))),
    ]
}
