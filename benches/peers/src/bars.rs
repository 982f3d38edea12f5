//! What is claimed beside the others, and whether it holds.

use std::fmt;

use vdso_time_benches::harness::Spacing::{self, BackToBack, Isolated};
use vdso_time_benches::harness::report::Table;
use vdso_time_benches::harness::samples::{Samples, Statistic};

use crate::rows::{COUNTER, DIRECT, MONOTONIC, OURS};
use crate::{figures, platform};

/// This crate's figure against another's.
pub struct Bar {
    row: &'static str,
    spacings: &'static [Spacing],
    against: &'static str,
    /// The largest ratio that meets it.
    at_most: f64,
}

const ALONE: &[Spacing] = &[Isolated];
const BOTH: &[Spacing] = &[BackToBack, Isolated];

const fn bar(row: &'static str, spacings: &'static [Spacing], against: &'static str, at_most: f64) -> Bar {
    Bar { row, spacings, against, at_most }
}

/// The rows that are no loop of calls.
pub const FIRST_CALL: &str = "first call";
/// The same where something else has read the time before: the vDSO's pages are there.
pub const FIRST_OWN_CALL: &str = "first call, after std's";
pub const SCALING: &str = "two threads";

/// Held against the figures.
pub const BARS: &[Bar] = &[
    bar("time()", ALONE, DIRECT, 1.03),
    bar("time()", ALONE, "libc", 1.03),
    bar("time()", ALONE, "glibc static", 0.70),
    bar("time()", ALONE, "musl", 0.10),
    bar("time()", ALONE, "std", 0.10),
    bar("time()", ALONE, "system call", 0.03),
    bar("gettimeofday()", BOTH, DIRECT, 1.01),
    bar("clock_gettime(REALTIME)", BOTH, DIRECT, 1.01),
    bar(MONOTONIC, BOTH, DIRECT, 1.01),
    bar("clock_gettime(BOOTTIME)", BOTH, DIRECT, 1.01),
    bar("clock_gettime(TAI)", BOTH, DIRECT, 1.01),
    bar("clock_gettime(MONOTONIC_RAW)", BOTH, DIRECT, 1.01),
    bar(MONOTONIC, BOTH, "libc", 0.99),
    bar(MONOTONIC, BOTH, "musl", 0.99),
    bar(MONOTONIC, BOTH, "std", 0.96),
    bar(MONOTONIC, BOTH, "rustix", 1.01),
    bar(MONOTONIC, BOTH, "Go time.Now", 0.50),
    bar(MONOTONIC, BOTH, "system call", 0.15),
    bar("clock_gettime(REALTIME_COARSE)", ALONE, DIRECT, 1.08),
    bar("clock_gettime(MONOTONIC_COARSE)", ALONE, DIRECT, 1.08),
    bar("clock_gettime(REALTIME_COARSE)", ALONE, "libc", 0.90),
    bar("clock_gettime(MONOTONIC_COARSE)", ALONE, "libc", 0.90),
    bar("clock_gettime(MONOTONIC_COARSE)", ALONE, "coarsetime", 0.75),
    bar("clock_getres(MONOTONIC)", BOTH, DIRECT, 1.03),
    bar("clock_getres(MONOTONIC)", BOTH, "libc", 0.92),
    bar("clock_getres(MONOTONIC)", BOTH, "rustix", 0.05),
    bar("getcpu()", BOTH, DIRECT, 1.03),
    bar("getcpu()", BOTH, "libc", 0.95),
    bar("find one function", ALONE, "selftests' parser", 1.00),
    bar("find five functions", ALONE, "selftests' parser", 1.00),
    bar("find one function, cold", ALONE, "selftests' parser", 1.00),
    bar("find five functions, cold", ALONE, "selftests' parser", 1.00),
    bar("find five functions, cold", ALONE, "goblin", 0.30),
    bar(FIRST_CALL, ALONE, "rustix", 0.60),
    bar(FIRST_OWN_CALL, ALONE, "rustix", 0.60),
    bar(COUNTER, ALONE, "quanta Clock::now", 0.95),
    bar(COUNTER, ALONE, "quanta Instant::now", 0.75),
    bar(COUNTER, ALONE, "minstant in ns", 0.65),
    bar(SCALING, BOTH, "alone", 1.02),
];

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Met,
    Missed,
    /// The same call measured twice differs by more than a third of the margin.
    Noisy,
    /// Not here: no such contender, or no such function of the vDSO.
    Absent,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Met => "met",
            Self::Missed => "missed",
            Self::Noisy => "not measured",
            Self::Absent => "not here",
        })
    }
}

/// A bar in one spacing.
struct Held {
    bar: &'static Bar,
    spacing: Spacing,
    median: Option<f64>,
    fastest: Option<f64>,
    noise: Option<f64>,
    /// What the vDSO's own function, or the bare counter, comes to in this crate's place: what does not meet the bar with that cannot.
    floor: Option<f64>,
}

/// Below which nothing of a row can be.
fn floor(row: &str) -> &'static str {
    if row == COUNTER { platform::COUNTERS[0].0 } else { DIRECT }
}

impl Held {
    fn all(samples: &Samples) -> Vec<Self> {
        let pairs = BARS.iter().flat_map(|bar| bar.spacings.iter().map(move |&spacing| (bar, spacing)));
        let held = pairs.map(|(bar, spacing)| {
            let pair = [OURS, bar.against];
            let ratio = |statistic| figures::ratio(samples, bar.row, spacing, pair, statistic);
            Self {
                bar,
                spacing,
                median: ratio(Statistic::Median),
                fastest: ratio(Statistic::Minimum),
                noise: figures::noise_between(samples, bar.row, spacing, pair),
                floor: figures::ratio(
                    samples,
                    bar.row,
                    spacing,
                    [floor(bar.row), bar.against],
                    Statistic::Median,
                )
                .filter(|_| bar.against != DIRECT),
            }
        });
        held.collect()
    }

    fn verdict(&self) -> Verdict {
        // What is claimed, or what it is met or missed by, if that is more: a bar at 1 claims no distance.
        let distance = self.median.map_or(0.0, |ratio| (ratio - self.bar.at_most).abs());
        let margin = (1.0 - self.bar.at_most).abs().max(distance);
        match (self.median, self.noise) {
            (None, _) => Verdict::Absent,
            // Fresh processes are compared by their medians alone.
            (Some(_), None) if !self.bar.row.starts_with(FIRST_CALL) => Verdict::Noisy,
            (Some(_), Some(noise)) if noise > margin / 3.0 => Verdict::Noisy,
            // To the digits that are printed.
            (Some(ratio), _) if (ratio * 1e3).round() <= (self.bar.at_most * 1e3).round() => Verdict::Met,
            _ => Verdict::Missed,
        }
    }

    fn cells(&self) -> Vec<String> {
        let number = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.3}"));
        vec![
            format!("{} / {}", self.bar.row, self.bar.against),
            self.spacing.name().into(),
            number(self.median),
            number(self.fastest),
            format!("≤ {:.2}", self.bar.at_most),
            self.verdict().to_string(),
            number(self.floor),
            self.noise.map_or_else(String::new, |noise| format!("{:.2}%", 100.0 * noise)),
        ]
    }
}

/// Every bar, and what was found.
pub fn table(samples: &Samples) -> Table {
    let head =
        ["vdso-time's ratio", "spacing", "median", "of minima", "bar", "", "the floor's", "control off by"];
    let rows = Held::all(samples).iter().map(Held::cells).collect();
    Table { name: "peers-bars", head: head.map(str::to_string).to_vec(), rows }
}

/// The bars with one of these verdicts, a line each.
pub fn with(samples: &Samples, verdicts: &[Verdict]) -> Vec<String> {
    let held = Held::all(samples);
    held.iter()
        .filter(|held| verdicts.contains(&held.verdict()))
        .map(|held| held.cells().join("  "))
        .collect()
}

/// Whether a bar of a row is too close to the noise.
pub fn is_noisy(samples: &Samples, row: &str) -> bool {
    Held::all(samples).iter().any(|held| held.bar.row == row && held.verdict() == Verdict::Noisy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vdso_time_benches::harness::samples::CONTROL;

    /// The verdict on `getcpu()`, isolated, beside `direct`: at most 1.03.
    fn verdict(ours: f64, again: f64) -> Verdict {
        let mut samples = Samples::default();
        for (contender, nanos) in [(OURS, ours), (DIRECT, 100.0), (CONTROL[0], 100.0), (CONTROL[1], again)] {
            samples.add(&format!("getcpu()\tisolated\t{contender}\t{nanos}")).expect("a line");
        }
        let held = Held::all(&samples);
        let of_direct = |held: &&Held| {
            (held.bar.row, held.bar.against) == ("getcpu()", DIRECT) && held.spacing == Isolated
        };
        held.iter().find(of_direct).expect("the bar").verdict()
    }

    #[test]
    fn a_bar_is_met_or_missed_or_not_measured() {
        assert!(verdict(103.0, 100.0) == Verdict::Met);
        assert!(verdict(103.1, 100.0) == Verdict::Missed);
        // A third of 3% is the most, or of the 7% by which it is missed.
        assert!(verdict(104.0, 100.9) == Verdict::Missed);
        assert!(verdict(104.0, 101.2) == Verdict::Noisy);
        assert!(verdict(110.0, 102.0) == Verdict::Missed);
        assert!(verdict(110.0, 103.0) == Verdict::Noisy);
        assert!(Held::all(&Samples::default()).iter().all(|held| held.verdict() == Verdict::Absent));
    }
}
