//! The project's claims about its figures, and whether a run confirms them.

use super::Spacing;
use super::command::Arguments;
use super::machine;
use super::samples::{OURS, Samples};
use crate::pages::Table;

/// About one CPU cycle, in nanoseconds. No call takes a fraction of a cycle.
const CYCLE: f64 = 0.25;

/// An upper bound on this crate's time, as a multiple of another contender's.
pub struct Limit {
    pub row: &'static str,
    of: &'static str,
    pub spacings: &'static [Spacing],
    pub against: &'static str,
    at_most: f64,
}

pub const fn isolated(row: &'static str, against: &'static str, at_most: f64) -> Limit {
    Limit {
        row,
        of: OURS,
        spacings: &[Spacing::Isolated],
        against,
        at_most,
    }
}

pub const fn both(row: &'static str, against: &'static str, at_most: f64) -> Limit {
    Limit {
        spacings: &Spacing::ALL,
        ..isolated(row, against, at_most)
    }
}

/// Whether a run confirms a claim, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    Missed,
    Noisy,
    Met,
}

impl Verdict {
    const fn name(self) -> &'static str {
        match self {
            Self::Missed => "missed",
            Self::Noisy => "noisy",
            Self::Met => "met",
        }
    }
}

impl Limit {
    /// Bounds another contender. The name of a contender of this crate begins with [`OURS`].
    #[must_use]
    pub const fn of(self, contender: &'static str) -> Self {
        Self {
            of: contender,
            ..self
        }
    }

    /// Returns the spacings that were measured, and the ratios found.
    fn found(&self, samples: &Samples) -> Vec<(Spacing, f64)> {
        let mut found = Vec::new();
        for &spacing in self.spacings {
            let ratio = samples.ratio(self.row, spacing, [self.of, self.against]);
            if let Some(ratio) = ratio {
                found.push((spacing, ratio));
            }
        }
        found
    }

    /// Returns the worst verdict of the limit's spacings, or `None` without the other contender.
    pub fn verdict(&self, samples: &Samples) -> Option<Verdict> {
        let mut worst = None;
        for (spacing, ratio) in self.found(samples) {
            let verdict = self.judge(samples, spacing, ratio);
            match worst {
                Some(other) if other <= verdict => {}
                _ => worst = Some(verdict),
            }
        }
        worst
    }

    /// Compares a ratio with the limit, to the precision of the tables, and allowing for the
    /// difference of the same call measured twice.
    fn judge(&self, samples: &Samples, spacing: Spacing, ratio: f64) -> Verdict {
        let above = ratio - self.at_most;
        let margin = (1.0 - self.at_most).abs().max(above.abs());
        // Fresh processes have no control; their medians alone are compared.
        let noise = samples.noise(self.row, spacing).unwrap_or(0.0);
        if noise > margin / 3.0 {
            return Verdict::Noisy;
        }
        let mut tolerance = noise.max(0.000_5);
        if let Some(other) = samples.nanos(self.row, spacing, self.against) {
            tolerance = tolerance.max(CYCLE / other);
        }
        if above < tolerance {
            Verdict::Met
        } else {
            Verdict::Missed
        }
    }
}

pub fn is_noisy(limits: &[Limit], samples: &Samples, row: &str) -> bool {
    for spacing in Spacing::ALL {
        let noise = samples.noise(row, spacing).unwrap_or(0.0);
        if noise > 0.01 {
            return true;
        }
    }
    for limit in limits {
        if limit.row == row && limit.verdict(samples) == Some(Verdict::Noisy) {
            return true;
        }
    }
    false
}

/// Returns the table of the limits, and a line for each limit that is missed or cannot be measured
/// here.
pub fn table(
    name: &'static str,
    limits: &[Limit],
    samples: &Samples,
    arguments: &Arguments,
) -> (Table, Vec<String>) {
    let head = ["vdso-time's time /", "at most", "found", "verdict"];
    let mut table = Table::new(name, head);
    let mut missed = Vec::new();
    // The limits are claims about 64-bit hardware.
    if cfg!(not(target_pointer_width = "64")) || machine::is_emulated() {
        return (table, missed);
    }
    for limit in limits {
        if !arguments.wants(limit.row) {
            continue;
        }
        let claim = match limit.of.strip_prefix(OURS) {
            Some(variant) => format!("{}{variant}, {}", limit.row, limit.against),
            None => format!("{}, {}, {}", limit.row, limit.of, limit.against),
        };
        let at_most = format!("{:.2}", limit.at_most);
        let mut ratios = Vec::new();
        for (_, ratio) in limit.found(samples) {
            ratios.push(format!("{ratio:.3}"));
        }
        let found = ratios.join(", ");
        let verdict = limit.verdict(samples);
        match verdict {
            Some(Verdict::Missed) => {
                missed.push(format!("missed: {claim}: {found}, at most {at_most}"));
            }
            None => missed.push(format!("not measured here: {claim}")),
            Some(Verdict::Noisy | Verdict::Met) => {}
        }
        let verdict = verdict.map_or("not here", Verdict::name);
        let cells = [at_most, found, verdict.into()];
        table.add(&claim, cells.map(Some));
    }
    (table, missed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_met_or_missed_or_noisy() {
        let direct = isolated("getcpu()", "direct", 1.03);
        let absent = isolated("getcpu()", "absent", 1.03);
        for (limit, ours, noise, verdict) in [
            (&direct, 103.0, 0.0, Some(Verdict::Met)),
            // A cycle of the CPU.
            (&direct, 103.2, 0.0, Some(Verdict::Met)),
            (&direct, 103.3, 0.0, Some(Verdict::Missed)),
            (&direct, 103.3, 0.004, Some(Verdict::Met)),
            // The noise may be at most a third of the limit's 3 %, or of the 7 % by which it is
            // missed.
            (&direct, 104.0, 0.012, Some(Verdict::Noisy)),
            (&direct, 110.0, 0.02, Some(Verdict::Missed)),
            (&absent, 1.0, 0.0, None),
        ] {
            let mut samples = Samples::default();
            for (name, nanos) in [
                (OURS, ours),
                ("direct", 100.0),
                ("measured", 1.0),
                ("measured again", 1.0 + noise),
            ] {
                samples.push(["getcpu()", "isolated", name], nanos);
            }
            let found = limit.verdict(&samples);
            assert_eq!(found, verdict, "{}, {ours}, {noise}", limit.against);
        }
    }
}
