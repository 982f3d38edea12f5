//! TSCNS 2.0, from `tscns.h` at commit de26b45 of February 2025 (MIT): a wall clock.
//!
//! It calibrates for 20 ms, and again every 3 seconds from a thread that its README shows. A
//! calibration bends the rate, so that the error is gone at the next one; an error above 1 ms
//! counts as 1 ms. On other CPUs than x86 it reads the kernel's clock.

use std::cell::Cell;
use std::rc::Rc;

use super::Clock;
use crate::thread::Thread;

const FIRST: i64 = 20_000_000;
const INTERVAL: f64 = 3e9;
const LARGEST: i64 = 1_000_000;

#[derive(Clone, Copy)]
struct Line {
    ticks: u64,
    nanos: i64,
    nanos_per_tick: f64,
    /// The error of the last calibration.
    error: i64,
}

impl Line {
    fn nanos_of(&self, ticks: u64) -> i64 {
        let passed = ticks.wrapping_sub(self.ticks) as i64;
        self.nanos + (passed as f64 * self.nanos_per_tick) as i64
    }
}

pub(super) struct Tscns {
    thread: Rc<Thread>,
    line: Cell<Line>,
}

fn ticks(thread: &Rc<Thread>) -> u64 {
    if thread.is_x86() {
        thread.ticks()
    } else {
        thread.realtime() as u64
    }
}

/// Returns both clocks at one moment: the closest of three samples.
fn sync(thread: &Rc<Thread>) -> (u64, i64) {
    let mut best = (u64::MAX, 0, 0);
    let mut last = ticks(thread);
    for _ in 0..3 {
        let nanos = thread.realtime();
        let now = ticks(thread);
        let width = now.wrapping_sub(last);
        if width < best.0 {
            best = (width, last.wrapping_add(width / 2), nanos);
        }
        last = now;
    }
    (best.1, best.2)
}

impl Tscns {
    fn calibrate(&self) {
        let line = self.line.get();
        let due = line
            .ticks
            .wrapping_add(((INTERVAL - 1_000.0) / line.nanos_per_tick) as u64);
        if (ticks(&self.thread) as i64) < due as i64 {
            return;
        }
        let (ticks, nanos) = sync(&self.thread);
        let error = (line.nanos_of(ticks) - nanos).clamp(-LARGEST, LARGEST);
        let passed = ticks.wrapping_sub(line.ticks) as i64 as f64 * line.nanos_per_tick;
        let change = (2 * error - line.error) as f64 / passed;
        self.line.set(Line {
            ticks,
            nanos: nanos + error,
            nanos_per_tick: line.nanos_per_tick * (1.0 - change),
            error,
        });
    }
}

impl Clock for Tscns {
    fn start(thread: &Rc<Thread>) -> Self {
        let (first_ticks, first_nanos) = sync(thread);
        while thread.realtime() < first_nanos + FIRST {}
        let (ticks, nanos) = sync(thread);
        let passed = ticks.wrapping_sub(first_ticks) as i64;
        let line = Line {
            ticks: first_ticks,
            nanos: first_nanos,
            nanos_per_tick: (nanos - first_nanos) as f64 / passed as f64,
            error: 0,
        };
        Self {
            thread: Rc::clone(thread),
            line: Cell::new(line),
        }
    }

    fn read(&self) -> u64 {
        self.calibrate();
        self.line.get().nanos_of(ticks(&self.thread)) as u64
    }

    fn says(&self) -> String {
        String::new()
    }
}
