//! What the project claims of its figures, and whether a run confirms it.

use super::Spacing;
use super::document::Table;
use super::samples::{OURS, Samples};

/// An upper bound on this crate's time, as a multiple of another contender's.
pub struct Bar {
    pub row: &'static str,
    pub spacings: &'static [Spacing],
    pub against: &'static str,
    pub at_most: f64,
}

pub const fn isolated(row: &'static str, against: &'static str, at_most: f64) -> Bar {
    Bar { row, spacings: &[Spacing::Isolated], against, at_most }
}

pub const fn both(row: &'static str, against: &'static str, at_most: f64) -> Bar {
    Bar { row, spacings: &Spacing::ALL, against, at_most }
}

impl Bar {
    /// The spacings that were measured, and their ratios.
    fn found(&self, samples: &Samples) -> Vec<(Spacing, f64)> {
        let ratio = |&spacing| Some((spacing, samples.ratio(self.row, spacing, [OURS, self.against])?));
        self.spacings.iter().filter_map(ratio).collect()
    }

    /// Returns the worst verdict of the bar's spacings, or `None` if nobody was measured against.
    pub fn verdict(&self, samples: &Samples) -> Option<&'static str> {
        let verdict = |(spacing, ratio): (Spacing, f64)| {
            let above = ratio - self.at_most;
            let margin = (1.0 - self.at_most).abs().max(above.abs());
            // Fresh processes have no control; their medians alone are compared.
            let is_noisy = samples.noise(self.row, spacing).is_some_and(|noise| noise > margin / 3.0);
            // To the digits that the tables have.
            if is_noisy {
                "noisy"
            } else if above < 0.000_5 {
                "met"
            } else {
                "missed"
            }
        };
        let verdicts: Vec<_> = self.found(samples).into_iter().map(verdict).collect();
        ["missed", "noisy", "met"].into_iter().find(|verdict| verdicts.contains(verdict))
    }
}

pub fn is_noisy(bars: &[Bar], samples: &Samples, row: &str) -> bool {
    let is_noisy = |spacing| samples.noise(row, spacing).is_some_and(|noise| noise > 0.01);
    let mut bars = bars.iter().filter(|bar| bar.row == row);
    Spacing::ALL.into_iter().any(is_noisy) || bars.any(|bar| bar.verdict(samples) == Some("noisy"))
}

/// Returns the table of the bars, and a line for each bar that is missed.
pub fn table(name: &'static str, bars: &[Bar], samples: &Samples) -> (Table, Vec<String>) {
    let mut table = Table::new(name, &["vdso-time's time /", "at most", "found", "verdict"]);
    let mut missed = Vec::new();
    // The bars are claims about 64-bit architectures.
    let bars = bars.iter().filter(|_| cfg!(target_pointer_width = "64"));
    for (bar, verdict) in bars.filter_map(|bar| Some((bar, bar.verdict(samples)?))) {
        let found: Vec<_> = bar.found(samples).iter().map(|(_, ratio)| format!("{ratio:.3}")).collect();
        let (found, claim) = (found.join(", "), format!("{}, {}", bar.row, bar.against));
        if verdict == "missed" {
            missed.push(format!("missed: {claim}: {found}, at most {:.2}", bar.at_most));
        }
        table.rows.push(vec![claim, format!("{:.2}", bar.at_most), found, verdict.into()]);
    }
    (table, missed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_met_or_missed_or_noisy() {
        for (against, ours, noise, verdict) in [
            ("direct", 103.0, 0.0, Some("met")),
            ("direct", 103.1, 0.0, Some("missed")),
            // A third of 3 % is the most, or of the 7 % by which it is missed.
            ("direct", 104.0, 0.012, Some("noisy")),
            ("direct", 110.0, 0.02, Some("missed")),
            ("nobody", 1.0, 0.0, None),
        ] {
            let mut samples = Samples::default();
            let control = [("measured", 1.0), ("measured again", 1.0 + noise)];
            for (name, nanos) in [(OURS, ours), ("direct", 100.0)].into_iter().chain(control) {
                samples.add(&format!("getcpu()\tisolated\t{name}\t{nanos}")).unwrap();
            }
            assert_eq!(isolated("getcpu()", against, 1.03).verdict(&samples), verdict, "{ours}, {noise}");
        }
    }
}
