//! Samples, one a process, of a number of contenders.

use std::collections::BTreeMap;

use super::stats::{median, minimum};
use super::{Contender, Row, Spacing, measure, process};

/// The names under which [`print()`] gives one contender's samples twice, each measured by itself: how far their ratio is from 1
/// is noise.
pub const CONTROL: [&str; 2] = ["measured", "measured again"];

/// What each process measured, by row, spacing and contender.
#[derive(Default)]
pub struct Samples(BTreeMap<[String; 3], Vec<f64>>);

/// How the samples of several processes become one figure.
#[derive(Clone, Copy)]
pub enum Statistic {
    /// The middle process.
    Median,
    /// The fastest one.
    Minimum,
}

/// What a child does: measures every contender of some rows, the last one twice, in both spacings, and prints the nanoseconds.
///
/// # Errors
/// The number of rounds is no number.
pub fn print(rows: &[Row], asked: &[String]) -> Result<(), String> {
    let (rounds, names) = asked.split_first().ok_or("the number of rounds is missing")?;
    let rounds = rounds.parse().map_err(|error| format!("{rounds}: {error}"))?;
    for row in rows.iter().filter(|row| names.contains(&row.name)) {
        let contenders: Vec<&Contender> = row.contenders.iter().chain(row.contenders.last()).collect();
        for spacing in Spacing::ALL {
            let nanos = measure(&contenders, spacing, rounds);
            let print = |name, nanos| println!("{}\t{}\t{name}\t{nanos}", row.name, spacing.name());
            for (contender, nanos) in row.contenders.iter().zip(&nanos) {
                print(contender.name, nanos);
            }
            for (name, nanos) in CONTROL.into_iter().rev().zip(nanos.iter().rev()) {
                print(name, nanos);
            }
        }
    }
    Ok(())
}

impl Samples {
    /// Has some rows measured by so many processes, one after the other, with [`print()`].
    ///
    /// # Errors
    /// A child failed, or printed something else.
    pub fn collect(processes: usize, rounds: usize, rows: &[&str]) -> Result<Self, String> {
        let rounds = rounds.to_string();
        let mut asked = vec![rounds.as_str()];
        asked.extend(rows);
        let mut samples = Self::default();
        for _ in 0..processes {
            samples.add(&process::child(&asked)?)?;
        }
        Ok(samples)
    }

    /// Adds what a process printed: a row, a spacing, a contender and the nanoseconds, each line.
    ///
    /// # Errors
    /// It printed something else.
    pub fn add(&mut self, text: &str) -> Result<(), String> {
        for line in text.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let &[row, spacing, contender, nanos] = fields.as_slice() else {
                return Err(format!("a child printed `{line}`"));
            };
            let nanos = nanos.parse().map_err(|error| format!("{nanos}: {error}"))?;
            self.0.entry([row, spacing, contender].map(str::to_string)).or_default().push(nanos);
        }
        Ok(())
    }

    /// Replaces the samples of the rows that the others have.
    pub fn replace(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// What each process measured of a contender, in their order.
    #[must_use]
    pub fn of(&self, row: &str, spacing: Spacing, contender: &str) -> Option<&[f64]> {
        self.0.get(&[row, spacing.name(), contender].map(str::to_string)).map(Vec::as_slice)
    }

    /// The nanoseconds of a call.
    #[must_use]
    pub fn nanos(&self, row: &str, spacing: Spacing, contender: &str, statistic: Statistic) -> Option<f64> {
        let samples = self.of(row, spacing, contender)?;
        Some(match statistic {
            Statistic::Minimum => minimum(samples),
            Statistic::Median => median(samples),
        })
    }

    /// How a contender compares with another: the median of the ratios within each process, or the ratio of the minima.
    #[must_use]
    pub fn ratio(
        &self,
        row: &str,
        spacing: Spacing,
        [one, other]: [&str; 2],
        statistic: Statistic,
    ) -> Option<f64> {
        let (ones, others) = (self.of(row, spacing, one)?, self.of(row, spacing, other)?);
        let ratio = match statistic {
            Statistic::Minimum => minimum(ones) / minimum(others),
            Statistic::Median => {
                median(&ones.iter().zip(others).map(|(one, other)| one / other).collect::<Vec<_>>())
            }
        };
        // An isolated call may cost nothing beside its fence, or less: that has no ratio.
        Some(ratio).filter(|ratio| ratio.is_finite() && *ratio > 0.0)
    }

    /// How the last contender of a row compares with itself.
    #[must_use]
    pub fn control(&self, row: &str, spacing: Spacing, statistic: Statistic) -> Option<f64> {
        self.ratio(row, spacing, CONTROL, statistic)
    }
}
