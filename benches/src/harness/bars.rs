//! What the project claims of its figures, and whether a run confirms it.

use super::Spacing;
use super::command::Arguments;
use super::machine;
use super::samples::{OURS, Samples};
use crate::pages::Table;

/// A CPU's cycle in nanoseconds, about. No call takes a part of one.
const CYCLE: f64 = 0.25;

/// An upper bound on this crate's time, as a multiple of another contender's.
pub struct Bar {
    pub row: &'static str,
    of: &'static str,
    pub spacings: &'static [Spacing],
    pub against: &'static str,
    at_most: f64,
}

pub const fn isolated(row: &'static str, against: &'static str, at_most: f64) -> Bar {
    Bar {
        row,
        of: OURS,
        spacings: &[Spacing::Isolated],
        against,
        at_most,
    }
}

pub const fn both(row: &'static str, against: &'static str, at_most: f64) -> Bar {
    Bar {
        spacings: &Spacing::ALL,
        ..isolated(row, against, at_most)
    }
}

impl Bar {
    /// Bounds another contender of this crate, whose name begins with [`OURS`].
    #[must_use]
    pub const fn of(self, contender: &'static str) -> Self {
        Self {
            of: contender,
            ..self
        }
    }

    /// Returns the spacings that were measured, and the ratios found.
    fn found(&self, samples: &Samples) -> Vec<(Spacing, f64)> {
        let ratio = |&spacing| {
            Some((
                spacing,
                samples.ratio(self.row, spacing, [self.of, self.against])?,
            ))
        };
        self.spacings.iter().filter_map(ratio).collect()
    }

    /// Returns the worst verdict of the bar's spacings, or `None` without the other contender.
    pub fn verdict(&self, samples: &Samples) -> Option<&'static str> {
        let verdict = |(spacing, ratio): (Spacing, f64)| {
            let above = ratio - self.at_most;
            let margin = (1.0 - self.at_most).abs().max(above.abs());
            // Fresh processes have no control; their medians alone are compared.
            let noise = samples.noise(self.row, spacing).unwrap_or(0.0);
            let other = samples.nanos(self.row, spacing, self.against);
            let cycle = other.map_or(0.0, |other| CYCLE / other);
            // To the digits that the tables have, and to what the same call measured twice differs.
            if noise > margin / 3.0 {
                "noisy"
            } else if above < noise.max(cycle).max(0.000_5) {
                "met"
            } else {
                "missed"
            }
        };
        let verdicts: Vec<_> = self.found(samples).into_iter().map(verdict).collect();
        ["missed", "noisy", "met"]
            .into_iter()
            .find(|verdict| verdicts.contains(verdict))
    }
}

pub fn is_noisy(bars: &[Bar], samples: &Samples, row: &str) -> bool {
    let is_noisy = |spacing| {
        samples
            .noise(row, spacing)
            .is_some_and(|noise| noise > 0.01)
    };
    let mut bars = bars.iter().filter(|bar| bar.row == row);
    Spacing::ALL.into_iter().any(is_noisy) || bars.any(|bar| bar.verdict(samples) == Some("noisy"))
}

/// Returns the table of the bars, and a line for each bar that is missed or cannot be measured
/// here.
pub fn table(
    name: &'static str,
    bars: &[Bar],
    samples: &Samples,
    arguments: &Arguments,
) -> (Table, Vec<String>) {
    let mut table = Table::new(name, ["vdso-time's time /", "at most", "found", "verdict"]);
    let mut missed = Vec::new();
    // The bars are claims about 64-bit hardware.
    let is_claimed = cfg!(target_pointer_width = "64") && !machine::is_emulated();
    let bars = bars.iter().filter(|_| is_claimed);
    for bar in bars.filter(|bar| arguments.wants(bar.row)) {
        let found = bar.found(samples);
        let at_most = format!("{:.2}", bar.at_most);
        let variant = bar.of.trim_start_matches(OURS);
        let (claim, verdict) = (
            format!("{}{variant}, {}", bar.row, bar.against),
            bar.verdict(samples),
        );
        let found: Vec<String> = found
            .iter()
            .map(|(_, ratio)| format!("{ratio:.3}"))
            .collect();
        let found = found.join(", ");
        match verdict {
            Some("missed") => missed.push(format!("missed: {claim}: {found}, at most {at_most}")),
            None => missed.push(format!("not measured here: {claim}")),
            _ => {}
        }
        table.add(
            &claim,
            [at_most, found, verdict.unwrap_or("not here").into()].map(Some),
        );
    }
    (table, missed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_met_or_missed_or_noisy() {
        let direct = isolated("getcpu()", "direct", 1.03);
        let nobody = isolated("getcpu()", "nobody", 1.03);
        for (bar, ours, noise, verdict) in [
            (&direct, 103.0, 0.0, Some("met")),
            // A cycle of the CPU.
            (&direct, 103.2, 0.0, Some("met")),
            (&direct, 103.3, 0.0, Some("missed")),
            (&direct, 103.3, 0.004, Some("met")),
            // The noise may be at most a third of the bar's 3 %, or of the 7 % by which it is
            // missed.
            (&direct, 104.0, 0.012, Some("noisy")),
            (&direct, 110.0, 0.02, Some("missed")),
            (&nobody, 1.0, 0.0, None),
        ] {
            let mut samples = Samples::default();
            let control = [("measured", 1.0), ("measured again", 1.0 + noise)];
            for (name, nanos) in [(OURS, ours), ("direct", 100.0)].into_iter().chain(control) {
                samples
                    .add(&format!("getcpu()\tisolated\t{name}\t{nanos}"))
                    .unwrap();
            }
            assert_eq!(
                bar.verdict(&samples),
                verdict,
                "{}, {ours}, {noise}",
                bar.against
            );
        }
    }
}
