//! The counter's rate, as a calibration of 10 ms has it and as it is over a long time.

use std::error::Error;
use std::io::Write;
use std::process::Command;

use vdso_time::{ClockId, counter};

use super::measured::{nanos, settle};

/// The argument for which this program calibrates, prints the rate in Hz, and leaves.
pub(crate) const CALIBRATE: &str = "--print-frequency";
/// How many processes calibrate.
const PROCESSES: usize = 101;

/// Both clocks at a time: the pair whose clock was read the soonest after the counter.
#[derive(Clone, Copy)]
pub(crate) struct Reference {
    ticks: u64,
    nanos: i64,
}

impl Reference {
    pub(crate) fn begin() -> Self {
        let pairs = (0..10_000).map(|_| {
            let ticks = counter::ticks_ordered();
            let nanos = nanos(ClockId::MONOTONIC);
            (counter::ticks_ordered() - ticks, Self { ticks, nanos })
        });
        pairs.min_by_key(|(cost, _)| *cost).expect("some pairs").1
    }

    /// The rate since then, in Hz.
    pub(crate) fn end(self) -> f64 {
        let now = Self::begin();
        (now.ticks - self.ticks) as f64 * 1e9 / (now.nanos - self.nanos) as f64
    }
}

pub(crate) fn calibrate(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    settle()?;
    Ok(writeln!(out, "{}", counter::frequency().ok_or("the rate is not known")?)?)
}

/// Calibrates in many fresh processes, and says how far their rates are from the one over a long time.
pub(crate) fn report(reference: f64, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let program = super::this_program();
    let mut errors = Vec::new();
    for _ in 0..PROCESSES {
        let output = Command::new(&program).arg(CALIBRATE).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let hertz: f64 =
            text.trim().parse().map_err(|_| String::from_utf8_lossy(&output.stderr).into_owned())?;
        errors.push(((hertz - reference) / reference * 1e9).abs());
    }
    errors.sort_by(f64::total_cmp);
    let [p50, p90, max] = [PROCESSES / 2, PROCESSES * 9 / 10, PROCESSES - 1].map(|at| errors[at]);
    writeln!(out, "counter     {reference:.1} Hz over the whole")?;
    writeln!(
        out,
        "calibration of 10 ms, in {PROCESSES} processes: off by {p50:.1} ppb p50, {p90:.1} p90, {max:.1} max"
    )?;
    Ok(())
}
