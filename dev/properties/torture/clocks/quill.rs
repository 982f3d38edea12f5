//! quill's `RdtscClock`, from `include/quill/backend/RdtscClock.h` at commit 30b158f (MIT): a wall
//! clock for the time stamps of log records.
//!
//! The rate is the median of three or more spins of 10 ms, on arm64 `CNTFRQ`. Every 500 ms it takes
//! the wall clock again, and jumps to it.

use std::cell::Cell;
use std::rc::Rc;

use super::Clock;
use crate::thread::Thread;

const SPIN: u64 = 10_000_000;
const INTERVAL: f64 = 500e6;
/// The most ticks between the two reads of the counter around the wall clock's.
const LAG: u64 = 50_000;

pub(super) struct Quill {
    thread: Rc<Thread>,
    nanos_per_tick: f64,
    interval: Cell<i64>,
    /// A tick and its time.
    base: Cell<(u64, i64)>,
}

fn spin(thread: &Rc<Thread>) -> f64 {
    let first_nanos = thread.monotonic();
    let first = thread.ticks();
    loop {
        let passed = thread.monotonic().saturating_sub(first_nanos);
        let ticks = thread.ticks();
        if passed >= SPIN {
            return ticks.wrapping_sub(first) as f64 / passed as f64;
        }
    }
}

fn median(rates: &mut [f64]) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

fn ticks_per_nano(thread: &Rc<Thread>) -> f64 {
    if !thread.is_x86() {
        return thread.hertz as f64 / 1e9;
    }
    let mut rates = Vec::new();
    let mut last = 0.0;
    while rates.len() < 15 {
        rates.push(spin(thread));
        if rates.len() < 3 || rates.len() % 2 == 0 {
            continue;
        }
        let middle = median(&mut rates);
        if ((middle - last) / middle).abs() < 0.01 {
            break;
        }
        last = middle;
    }
    median(&mut rates)
}

impl Quill {
    fn resync(&self, lag: u64) -> bool {
        for _ in 0..4 {
            let begin = self.thread.ticks();
            let nanos = self.thread.realtime();
            let width = self.thread.ticks().wrapping_sub(begin);
            if width <= lag {
                self.base.set((begin.wrapping_add(width / 2), nanos));
                self.interval.set((INTERVAL / self.nanos_per_tick) as i64);
                return true;
            }
        }
        self.interval.set(self.interval.get().saturating_mul(2));
        false
    }

    fn passed(&self, ticks: u64) -> i64 {
        ticks.wrapping_sub(self.base.get().0) as i64
    }
}

impl Clock for Quill {
    fn start(thread: &Rc<Thread>) -> Self {
        let nanos_per_tick = 1.0 / ticks_per_nano(thread);
        let clock = Self {
            thread: Rc::clone(thread),
            nanos_per_tick,
            interval: Cell::new((INTERVAL / nanos_per_tick) as i64),
            base: Cell::new((0, 0)),
        };
        if !clock.resync(LAG) {
            clock.resync(2 * LAG);
        }
        clock
    }

    fn read(&self) -> u64 {
        let ticks = self.thread.ticks();
        if self.passed(ticks) > self.interval.get() {
            self.resync(LAG);
        }
        let passed = self.passed(ticks) as f64 * self.nanos_per_tick;
        (self.base.get().1 + passed as i64) as u64
    }

    fn says(&self) -> String {
        String::new()
    }
}
