//! `vdso-doctor accuracy`: how far the counter clock is from the kernel's clocks.

#![allow(clippy::cast_precision_loss, reason = "what is printed has at most 11 digits")]

use std::fmt;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};

use hdrhistogram::Histogram;
use signal_hook::consts::SIGINT;
use vdso_doctor::{Read, check};
use vdso_time::{ClockId, clock_gettime};
use vdso_time_counter::{self as counter, CounterMonotonic, State, Statistics, Status};

use crate::console;

/// Measures for so many seconds, or until SIGINT, and returns the report.
pub(crate) fn report(seconds: u32) -> Result<String, String> {
    // Fails if reading the counter ends this process.
    check::<Read>(&[]).map_err(|finding| finding.message)?;
    let state = settle()?;
    let interrupt = console::caught(&[SIGINT]).map_err(|error| format!("cannot catch SIGINT: {error}"))?;
    console::say(&format!("comparing the clocks for {seconds} s; Ctrl-C ends it earlier"));
    let seen = Deviation::measure(seconds, &interrupt)?;
    match counter::state().status {
        Status::Used | Status::Stale => {
            let State { status, error_bound, .. } = state;
            let bound = error_bound.as_nanos();
            Ok(format!("status       {status}\nerror bound  {bound} ns\n\n{seen}\n\n{}", statistics()))
        }
        status => Err(format!("the counter is no longer used: {status}")),
    }
}

/// Returns what the counter clock has done in this process.
fn statistics() -> String {
    let Statistics { segments, calibrations, refusals, vdso_reads, .. } = counter::statistics();
    let Statistics { last_refusal, last_error, largest_error, .. } = counter::statistics();
    let last = last_refusal.map_or(String::new(), |refusal| format!("; the last one: {refusal}"));
    let [last_error, largest_error] = [last_error, largest_error].map(|error| error.as_nanos());
    format!(
        "segments made             {segments}\ncalibrations              {calibrations}\n\
         refusals                  {refusals}{last}\nreads answered by vDSO    {vdso_reads}\n\
         error at last segment     {last_error} ns\nlargest of these errors   {largest_error} ns\n"
    )
}

/// Reads until the counter is used, and returns its state of that moment.
fn settle() -> Result<State, String> {
    let start = nanos(ClockId::MONOTONIC)?;
    loop {
        let _ = counter::monotonic();
        let state = counter::state();
        if state.status == Status::Used {
            return Ok(state);
        }
        if nanos(ClockId::MONOTONIC)? - start > 2_000_000_000 {
            return Err(format!("the counter is not used: {}", state.status));
        }
    }
}

/// Reads a clock through the vDSO, in nanoseconds.
fn nanos(clock: ClockId) -> Result<i64, String> {
    let now = clock_gettime(clock).map_err(|error| format!("cannot read {clock:?}: {error}"))?;
    Ok(now.as_nanos() as i64)
}

/// The digits of a deviation that are kept, so that the histogram of any run fits into memory.
const DIGITS: u8 = 3;

/// The counter clock between two reads of the kernel's clock: how far it is from their middle.
/// Reads that were interrupted are counted and left out.
struct Deviation {
    monotonic: Histogram<u64>,
    realtime: Histogram<u64>,
    backward: u64,
    interrupted: u64,
    /// How long it took, in nanoseconds.
    passed: i64,
    first: Option<(i64, i64)>,
    last: Option<(i64, i64)>,
}

impl fmt::Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { monotonic, realtime, backward, interrupted, .. } = self;
        let row = |sizes: &Histogram<u64>| {
            let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|share| sizes.value_at_quantile(share));
            format!("{p50:>6} {p99:>6} {p999:>6} {:>6} {:>10}", sizes.max(), sizes.len())
        };
        let seconds = self.passed as f64 / 1e9;
        writeln!(f, "deviation from the kernel's clock in {seconds:.1} s, without {interrupted} reads")?;
        writeln!(f, "that were interrupted\n")?;
        writeln!(f, "ns               p50    p99  p99.9    max   of reads")?;
        writeln!(f, "MONOTONIC     {}\nREALTIME      {}", row(monotonic), row(realtime))?;
        write!(f, "backward steps {backward}\nrate over the whole: {:+.2} ppb of the kernel's", self.rate())
    }
}

impl Deviation {
    fn measure(seconds: u32, interrupt: &AtomicUsize) -> Result<Self, String> {
        let length = i64::from(seconds) * 1_000_000_000;
        let is_watched = io::stderr().is_terminal();
        let sizes = || Histogram::new(DIGITS).map_err(|error| error.to_string());
        let mut seen = Self {
            monotonic: sizes()?,
            realtime: sizes()?,
            backward: 0,
            interrupted: 0,
            passed: 0,
            first: None,
            last: None,
        };

        // A read that takes half as long again, and three ticks, was interrupted and proves
        // nothing.
        let mut width = i64::MAX;
        for _ in 0..1000 {
            width = width.min(probe(ClockId::MONOTONIC, monotonic)?.width);
        }
        let tick = 1_000_000_000 / counter::state().frequency.unwrap_or(1_000_000_000).max(1);
        let limit = width * 3 / 2 + 3 * tick as i64;
        let start = nanos(ClockId::MONOTONIC)?;
        let mut latest = 0;
        let mut shown = 0;
        loop {
            let here = probe(ClockId::MONOTONIC, monotonic)?;
            seen.backward += u64::from(here.read < latest);
            latest = here.read;
            let passed = here.read - start;
            seen.passed = passed;
            let is_done = passed >= length || interrupt.load(Ordering::Relaxed) != 0;
            let second = passed / 1_000_000_000;
            if is_watched && (is_done || second != shown) {
                shown = second;
                let end = if is_done { "\n" } else { "" };
                let worst = seen.monotonic.max();
                let _ = write!(io::stderr(), "\r{second:4} s, largest deviation {worst} ns {end}");
            }
            if is_done {
                return Ok(seen);
            }
            if here.width > limit {
                seen.interrupted += 1;
                continue;
            }
            seen.monotonic += here.deviation.unsigned_abs();
            seen.last = Some((passed, here.deviation));
            seen.first = seen.first.or(seen.last);
            let wall = probe(ClockId::REALTIME, realtime)?;
            if wall.width <= limit {
                seen.realtime += wall.deviation.unsigned_abs();
            }
        }
    }

    /// Returns the parts in 10^9 by which the counter clock was faster, from the first read to the
    /// last.
    fn rate(&self) -> f64 {
        match (self.first, self.last) {
            (Some(first), Some(last)) if last.0 > first.0 => {
                (last.1 - first.1) as f64 / (last.0 - first.0) as f64 * 1e9
            }
            _ => 0.0,
        }
    }
}

/// A read between two of the kernel's clock.
struct Probe {
    read: i64,
    deviation: i64,
    width: i64,
}

fn monotonic() -> i64 {
    CounterMonotonic::now().as_nanos()
}

fn realtime() -> i64 {
    counter::realtime().as_nanos() as i64
}

fn probe(clock: ClockId, read: impl Fn() -> i64) -> Result<Probe, String> {
    let before = nanos(clock)?;
    let read = read();
    let after = nanos(clock)?;
    Ok(Probe { read, deviation: read - (before + (after - before) / 2), width: after - before })
}
