//! `vdso-doctor accuracy`: how far the counter clock is from the kernel's clocks, over time.

#![allow(clippy::cast_precision_loss, reason = "what is printed has at most 11 digits")]

mod deviation;
mod plot;

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use deviation::Deviation;
use vdso_time::counter::{self, State, Status};
use vdso_time::{ClockId, clock_gettime};

/// Measures for so long, and returns the report.
pub(crate) fn report(seconds: f64, plot: Option<&Path>) -> Result<String, Box<dyn Error>> {
    let state = settle()?;
    eprintln!("comparing the clocks for {seconds} s");
    let length = Duration::from_secs_f64(seconds);
    let start = Pair::read()?;
    let seen = Deviation::measure(length)?;
    let hertz = Pair::read()?.rate_since(&start);
    let off = state.frequency.map_or(0.0, |stated| (stated as f64 - hertz) / hertz * 1e9);
    let text = format!(
        "status       {}\nerror bound  {} ns\n\n{seen}\n\n\
         counter      {hertz:.1} Hz over the whole; the first calibration was off by {off:+.1} ppb\n",
        state.status, state.error_bound
    );
    if let Some(file) = plot {
        plot::draw(file, seconds, &seen.columns)
            .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    }
    match counter::state().status {
        Status::Used | Status::Stale => Ok(text),
        status => Err(format!("the counter is no longer used: {status}").into()),
    }
}

/// Reads until the counter is used, and returns its state of that moment.
fn settle() -> Result<State, String> {
    let start = Instant::now();
    loop {
        let _ = counter::monotonic();
        let state = counter::state();
        if state.status == Status::Used {
            return Ok(state);
        }
        if start.elapsed() > Duration::from_secs(2) {
            return Err(format!("the counter is not used: {}", state.status));
        }
    }
}

/// Nanoseconds of a clock through the vDSO.
fn nanos(clock: ClockId) -> Result<i64, String> {
    let now = clock_gettime(clock).map_err(|error| format!("cannot read {clock:?}: {error}"))?;
    Ok(now.as_nanos())
}

/// The counter and the kernel's clock at one moment.
struct Pair {
    ticks: u64,
    nanos: i64,
}

impl Pair {
    /// The closest of many.
    fn read() -> Result<Self, String> {
        let mut closest = (u64::MAX, Self { ticks: 0, nanos: 0 });
        for _ in 0..10_000 {
            let ticks = counter::ticks_ordered();
            let nanos = nanos(ClockId::MONOTONIC)?;
            let cost = counter::ticks_ordered() - ticks;
            if cost < closest.0 {
                closest = (cost, Self { ticks, nanos });
            }
        }
        Ok(closest.1)
    }

    /// Ticks of a second.
    fn rate_since(&self, start: &Self) -> f64 {
        (self.ticks - start.ticks) as f64 * 1e9 / (self.nanos - start.nanos) as f64
    }
}
