//! What each process measured.

use std::collections::BTreeMap;

use super::command::{Arguments, child, run};
use super::{Row, Spacing, measure, median};
pub use crate::pages::OURS;

/// The vDSO's function, called through a pointer in a register. No caller of it can be faster.
pub const DIRECT: &str = "direct";

/// The last contender of a row, measured twice by different loops. The difference is noise.
const CONTROL: [&str; 2] = ["measured", "measured again"];

/// How often a noisy row is measured again.
const TRIES: usize = 5;

/// Nanoseconds by row, spacing and contender, one value for each process.
#[derive(Default)]
pub struct Samples(BTreeMap<[String; 3], Vec<f64>>);

/// Measures the rows that `asked` names, and prints the nanoseconds. A child process does this.
pub fn print(rows: &[Row], asked: &[String]) -> Result<(), String> {
    let (rounds, names) = asked
        .split_first()
        .ok_or("the number of rounds is missing")?;
    let rounds = rounds
        .parse()
        .map_err(|error| format!("{rounds}: {error}"))?;
    for row in rows.iter().filter(|row| names.contains(&row.name)) {
        let names = row
            .contenders
            .iter()
            .map(|contender| contender.name)
            .chain(CONTROL);
        for spacing in Spacing::ALL {
            for (name, nanos) in names.clone().zip(measure(&row.contenders, spacing, rounds)) {
                println!("{}\t{}\t{name}\t{nanos}", row.name, spacing.name());
            }
        }
    }
    Ok(())
}

/// Prints the nanoseconds of an isolated call, as [`print()`] does.
pub fn say(row: &str, contender: &str, nanos: f64) {
    println!("{row}\t{}\t{contender}\t{nanos}", Spacing::Isolated.name());
}

impl Samples {
    /// Measures rows in several processes, and measures rows again while they are noisy.
    pub fn collect(
        arguments: &Arguments,
        names: &[String],
        one: impl Fn(&mut Self, &[&str]) -> Result<(), String>,
        is_noisy: impl Fn(&Self, &str) -> bool,
    ) -> Result<Self, String> {
        let rounds = arguments.effort.choose("1", "60", "240");
        let mut all = Self::default();
        let mut left: Vec<&str> = names.iter().map(String::as_str).collect();
        for attempt in 0..=arguments.effort.choose(0, 1, TRIES) {
            if attempt > 0 && !left.is_empty() {
                eprintln!("too noisy, measured again: {}", left.join("; "));
            }
            let asked = [&[rounds], left.as_slice()].concat();
            let mut samples = Self::default();
            for _ in 0..arguments.effort.choose(1, 5, 15) {
                if !left.is_empty() {
                    one(&mut samples, &asked)?;
                }
            }
            all.0.append(&mut samples.0);
            left.retain(|row| is_noisy(&all, row));
        }
        Ok(all)
    }

    pub fn add_child(&mut self, asked: &[&str]) -> Result<(), String> {
        self.add(&run(&mut child(asked)?)?)
    }

    /// Adds the lines that [`print()`] printed.
    pub fn add(&mut self, text: &str) -> Result<(), String> {
        for line in text.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let [row, spacing, contender, nanos] = *fields else {
                return Err(format!("a child process printed `{line}`"));
            };
            let nanos = nanos.parse().map_err(|error| format!("{nanos}: {error}"))?;
            self.push([row, spacing, contender], nanos);
        }
        Ok(())
    }

    /// Adds the nanoseconds of a row, a spacing and a contender.
    pub fn push(&mut self, key: [&str; 3], nanos: f64) {
        self.0
            .entry(key.map(str::to_string))
            .or_default()
            .push(nanos);
    }

    pub fn of(&self, row: &str, spacing: Spacing, contender: &str) -> Option<&[f64]> {
        self.0
            .get(&[row, spacing.name(), contender].map(str::to_string))
            .map(Vec::as_slice)
    }

    pub fn nanos(&self, row: &str, spacing: Spacing, contender: &str) -> Option<f64> {
        self.of(row, spacing, contender).map(median)
    }

    /// Returns the median of the ratios within each process. In an emulator an isolated call can
    /// cost less than its fence, which gives no ratio.
    pub fn ratio(&self, row: &str, spacing: Spacing, [one, other]: [&str; 2]) -> Option<f64> {
        let (ones, others) = (self.of(row, spacing, one)?, self.of(row, spacing, other)?);
        let pairs = ones
            .iter()
            .zip(others)
            .filter(|(one, other)| **one > 0.0 && **other > 0.0);
        let ratios: Vec<f64> = pairs.map(|(one, other)| one / other).collect();
        Some(median(&ratios)).filter(|_| ratios.len() * 2 > ones.len())
    }

    /// Returns the nanoseconds of an isolated call with so many decimals.
    pub fn isolated(&self, row: &str, contender: &str, decimals: usize) -> Option<String> {
        self.nanos(row, Spacing::Isolated, contender)
            .map(|nanos| format!("{nanos:.decimals$}"))
    }

    /// Returns the nanoseconds in both spacings. In an emulator they can be negative.
    pub fn both(&self, row: &str, contender: &str, decimals: usize) -> Option<String> {
        let back_to_back = self.nanos(row, Spacing::BackToBack, contender)?;
        Some(format!(
            "{}, {back_to_back:.decimals$}",
            self.isolated(row, contender, decimals)?
        ))
    }

    /// Returns how much the ratio of the same call measured twice differs from 1.
    pub fn noise(&self, row: &str, spacing: Spacing) -> Option<f64> {
        self.ratio(row, spacing, CONTROL)
            .map(|ratio| (1.0 - ratio).abs())
    }

    /// Returns the text of a ratio in both spacings. A ratio is `noisy` if the noise exceeds a
    /// third of its difference from 1, or 1 %.
    pub fn cell(&self, row: &str, pair: [&str; 2]) -> Option<String> {
        let text = |spacing| {
            let ratio = self.ratio(row, spacing, pair)?;
            let is_clear = self.noise(row, spacing)? <= (1.0 - ratio).abs().max(0.03) / 3.0;
            Some(if is_clear {
                format!("{ratio:.3}")
            } else {
                "noisy".into()
            })
        };
        let texts = Spacing::ALL.map(text);
        let is_measured = texts.iter().any(Option::is_some);
        is_measured.then(|| {
            texts
                .map(|text| text.unwrap_or_else(|| "-".into()))
                .join(", ")
        })
    }
}
