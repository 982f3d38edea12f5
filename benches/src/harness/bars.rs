//! What the project claims of its figures, and whether a run confirms it.

use std::fmt;

use super::Spacing;
use super::document::Table;
use super::samples::{DIRECT, OURS, Samples};

/// A bare read of the CPU's counter: the floor of the counter clock.
pub const TICKS: &str = "bare counter";

/// An upper bound on this crate's time, as a multiple of another contender's.
pub struct Bar {
    /// The row.
    pub row: &'static str,
    /// The spacings in which the bar holds.
    pub spacings: &'static [Spacing],
    /// The other contender.
    pub against: &'static str,
    /// The largest ratio that meets the bar.
    pub at_most: f64,
}

/// Creates a bar for isolated calls.
pub const fn isolated(row: &'static str, against: &'static str, at_most: f64) -> Bar {
    Bar { row, spacings: &[Spacing::Isolated], against, at_most }
}

/// Creates a bar for both spacings.
pub const fn both(row: &'static str, against: &'static str, at_most: f64) -> Bar {
    Bar { row, spacings: &Spacing::ALL, against, at_most }
}

/// What a run says about a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// No such contender here, or no such function in this vDSO.
    Absent,
    /// The ratio is within the bar.
    Met,
    /// The noise exceeds a third of the margin.
    Noisy,
    /// The ratio exceeds the bar.
    Missed,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Absent => "not here",
            Self::Met => "met",
            Self::Noisy => "noisy",
            Self::Missed => "missed",
        })
    }
}

impl Bar {
    /// The ratio of what nothing in the row can be faster than. It explains a missed bar.
    fn floor_ratio(&self, samples: &Samples, spacing: Spacing) -> Option<f64> {
        let has_ticks = samples.of(self.row, spacing, TICKS).is_some();
        let floor = if has_ticks { TICKS } else { DIRECT };
        samples.ratio(self.row, spacing, [floor, self.against]).filter(|_| floor != self.against)
    }

    fn verdict_in(&self, samples: &Samples, spacing: Spacing) -> Verdict {
        let Some(ratio) = samples.ratio(self.row, spacing, [OURS, self.against]) else {
            return Verdict::Absent;
        };
        let above = ratio - self.at_most;
        let margin = (1.0 - self.at_most).abs().max(above.abs());
        // Fresh processes have no control; their medians alone are compared.
        if samples.noise(self.row, spacing).is_some_and(|noise| noise > margin / 3.0) {
            return Verdict::Noisy;
        }
        // To the digits that the tables have.
        if above < 0.000_5 { Verdict::Met } else { Verdict::Missed }
    }

    /// Returns the worst verdict of the bar's spacings.
    pub fn verdict(&self, samples: &Samples) -> Verdict {
        let verdicts = self.spacings.iter().map(|&spacing| self.verdict_in(samples, spacing));
        verdicts.max().unwrap_or(Verdict::Absent)
    }
}

/// Returns whether a row must be measured again.
pub fn is_noisy(bars: &[Bar], samples: &Samples, row: &str) -> bool {
    let is_noisy = |spacing| samples.noise(row, spacing).is_some_and(|noise| noise > 0.01);
    let mut bars = bars.iter().filter(|bar| bar.row == row);
    Spacing::ALL.into_iter().any(is_noisy) || bars.any(|bar| bar.verdict(samples) == Verdict::Noisy)
}

/// Returns the table of the bars, and a line for each bar that is missed.
pub fn table(name: &'static str, bars: &[Bar], samples: &Samples) -> (Table, Vec<String>) {
    let mut table = Table::new(name, &["vdso-time's time /", "at most", "found", "floor", "verdict"]);
    let mut missed = Vec::new();
    // The bars are claims about 64-bit architectures.
    let bars = bars.iter().filter(|_| cfg!(target_pointer_width = "64"));
    for (bar, verdict) in bars.map(|bar| (bar, bar.verdict(samples))).filter(|it| it.1 != Verdict::Absent) {
        let join = |ratio: &dyn Fn(Spacing) -> Option<f64>| {
            let ratios = bar.spacings.iter().filter_map(|&spacing| ratio(spacing));
            ratios.map(|ratio| format!("{ratio:.3}")).collect::<Vec<_>>().join(", ")
        };
        let found = join(&|spacing| samples.ratio(bar.row, spacing, [OURS, bar.against]));
        let floor = join(&|spacing| bar.floor_ratio(samples, spacing));
        let claim = format!("{}, {}", bar.row, bar.against);
        if verdict == Verdict::Missed {
            missed.push(format!("missed: {claim}: {found}, at most {:.2}", bar.at_most));
        }
        table.rows.push(vec![claim, format!("{:.2}", bar.at_most), found, floor, verdict.to_string()]);
    }
    (table, missed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(against: &'static str, nanos: [f64; 3], noise: f64) -> Verdict {
        let [ours, direct, other] = nanos;
        let mut samples = Samples::default();
        for (name, nanos) in [
            (OURS, ours),
            (DIRECT, direct),
            ("libc", other),
            ("measured", 1.0),
            ("measured again", 1.0 + noise),
        ] {
            samples.add(&format!("getcpu()\tisolated\t{name}\t{nanos}")).unwrap();
        }
        isolated("getcpu()", against, 1.03).verdict(&samples)
    }

    #[test]
    fn a_bar_is_met_or_missed_or_noisy() {
        assert_eq!(verdict(DIRECT, [103.0, 100.0, 1.0], 0.0), Verdict::Met);
        // A tenth of a nanosecond counts too.
        assert_eq!(verdict(DIRECT, [1.5, 1.4, 1.0], 0.0), Verdict::Missed);
        // A third of 3 % is the most, or of the 7 % by which it is missed.
        assert_eq!(verdict(DIRECT, [104.0, 100.0, 1.0], 0.012), Verdict::Noisy);
        assert_eq!(verdict(DIRECT, [110.0, 100.0, 1.0], 0.02), Verdict::Missed);
        assert_eq!(verdict("nobody", [1.0, 1.0, 1.0], 0.0), Verdict::Absent);
    }

    #[test]
    fn a_bar_that_the_floor_misses_is_missed() {
        assert_eq!(verdict("libc", [122.0, 122.0, 100.0], 0.0), Verdict::Missed);
    }
}
