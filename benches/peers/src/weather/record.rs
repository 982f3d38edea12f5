//! How far a clock is from the kernel's.

use std::thread;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::clocks::Clock;

/// A clock that is farther from the kernel's, in nanoseconds, has not recovered.
const RECOVERED: i64 = 1000;

/// What was seen of a clock.
pub struct Record {
    /// The clock's time less the kernel's, at its zero.
    offset: i64,
    /// The shortest time between the kernel's reads before and after. Half as long again was
    /// interrupted.
    quickest: i64,
    deviations: Histogram<u64>,
    latest: i64,
    /// When the clock first said that time.
    latest_since: i64,
    standstill: i64,
    steps_back: u64,
    reads: u64,
    beyond: u64,
    by_counter: u64,
    off_since: Option<i64>,
    recovery: i64,
}

impl Record {
    /// Compares a clock whose zero is anywhere with the kernel's, after each pause.
    pub fn new(clock: &Clock, pause: Duration) -> Self {
        let compare = |_| {
            thread::sleep(pause);
            let (before, now, after) = (clock.kernel(), (clock.read)(), clock.kernel());
            (after - before, now - i64::midpoint(before, after))
        };
        let (quickest, offset) =
            (0..if pause.is_zero() { 1000 } else { 20 }).map(compare).min().unwrap_or_default();
        Self {
            // This crate's clock and those of the wall have the kernel's zero.
            offset: if offset.abs() < 10_000_000 { 0 } else { offset },
            quickest,
            deviations: Histogram::new(3).expect("3 digits are allowed"),
            latest: i64::MIN,
            latest_since: 0,
            standstill: 0,
            steps_back: 0,
            reads: 0,
            beyond: 0,
            by_counter: 0,
            off_since: None,
            recovery: 0,
        }
    }

    /// Reads the clock between two reads of the kernel's.
    pub fn compare(&mut self, clock: &Clock) {
        let state = clock.state();
        let (before, now, after) = (clock.kernel(), (clock.read)() - self.offset, clock.kernel());
        self.reads += 1;
        if let Some(((bound, is_used), (later, _))) = state.zip(clock.state()) {
            let bound = bound.max(later) as i64;
            self.by_counter += u64::from(is_used);
            self.beyond += u64::from(now < before - bound || now > after + bound);
        }
        if now == self.latest {
            self.standstill = self.standstill.max(before - self.latest_since);
        } else {
            self.steps_back += u64::from(now < self.latest);
            (self.latest, self.latest_since) = (now, after);
        }
        if (after - before) * 2 <= self.quickest * 3 {
            let deviation = now - i64::midpoint(before, after);
            // The histogram grows.
            let _ = self.deviations.record(deviation.unsigned_abs());
            let is_off = deviation.abs() > RECOVERED + (after - before) / 2;
            self.off_since = self.off_since.or(Some(before)).filter(|_| is_off);
        }
        self.recovery = self.recovery.max(self.off_since.map_or(0, |since| after - since));
    }

    /// Adds what another thread saw of the same clock.
    pub fn add(&mut self, other: &Self) {
        // Both have the same number of digits and grow.
        let _ = self.deviations.add(&other.deviations);
        self.standstill = self.standstill.max(other.standstill);
        self.recovery = self.recovery.max(other.recovery);
        self.steps_back += other.steps_back;
        self.reads += other.reads;
        self.beyond += other.beyond;
        self.by_counter += other.by_counter;
    }

    /// The head of the table.
    pub const HEAD: [&str; 10] = [
        "weather",
        "clock",
        "p50",
        "p99.9",
        "largest",
        "beyond the bound",
        "standstill",
        "steps back",
        "by the counter",
        "off by 1 us for",
    ];

    /// The cells of the clock, from its name on.
    pub fn cells(&self, clock: &Clock) -> Vec<String> {
        let of = |at| nanos(self.deviations.value_at_quantile(at) as f64);
        let ours = |text: String| if clock.state().is_some() { text } else { String::new() };
        vec![
            clock.name.into(),
            of(0.5),
            of(0.999),
            of(1.0),
            ours(self.beyond.to_string()),
            nanos(self.standstill as f64),
            self.steps_back.to_string(),
            ours(format!("{:.2} %", self.by_counter as f64 * 100.0 / self.reads.max(1) as f64)),
            nanos(self.recovery as f64),
        ]
    }
}

/// Nanoseconds in a unit in which the number is short.
fn nanos(nanos: f64) -> String {
    match nanos {
        ..1e4 => format!("{nanos:.0} ns"),
        ..1e7 => format!("{:.0} us", nanos / 1e3),
        ..1e10 => format!("{:.0} ms", nanos / 1e6),
        _ => format!("{:.0} s", nanos / 1e9),
    }
}
