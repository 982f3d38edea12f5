//! The measurements of each process.

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

/// Splits the arguments of a child process into the number of rounds and the names of rows.
pub(crate) fn parse(asked: &[String]) -> Result<(usize, &[String]), String> {
    let Some((rounds, names)) = asked.split_first() else {
        return Err("the number of rounds is missing".into());
    };
    match rounds.parse() {
        Ok(number) => Ok((number, names)),
        Err(error) => Err(format!("{rounds}: {error}")),
    }
}

/// Measures the rows that `asked` names, and prints the nanoseconds. A child process does this.
pub fn print(rows: &[Row], asked: &[String]) -> Result<(), String> {
    let (rounds, names) = parse(asked)?;
    for row in rows {
        if !names.contains(&row.name) {
            continue;
        }
        let mut contenders: Vec<&str> = row.contenders.iter().map(|one| one.name).collect();
        contenders.extend(CONTROL);
        for spacing in Spacing::ALL {
            let nanos = measure(&row.contenders, spacing, rounds);
            for (name, nanos) in contenders.iter().zip(nanos) {
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
        let mut child = child(asked)?;
        let text = run(&mut child)?;
        self.add(&text)
    }

    /// Adds the lines that [`print()`] printed.
    pub fn add(&mut self, text: &str) -> Result<(), String> {
        for line in text.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let [row, spacing, contender, nanos] = *fields else {
                return Err(format!("a child process printed `{line}`"));
            };
            let nanos = match nanos.parse() {
                Ok(number) => number,
                Err(error) => return Err(format!("{nanos}: {error}")),
            };
            self.push([row, spacing, contender], nanos);
        }
        Ok(())
    }

    /// Adds the nanoseconds of a row, a spacing and a contender.
    pub fn push(&mut self, key: [&str; 3], nanos: f64) {
        let key = key.map(str::to_string);
        let values = self.0.entry(key).or_default();
        values.push(nanos);
    }

    pub fn of(&self, row: &str, spacing: Spacing, contender: &str) -> Option<&[f64]> {
        let key = [row, spacing.name(), contender].map(str::to_string);
        self.0.get(&key).map(Vec::as_slice)
    }

    pub fn nanos(&self, row: &str, spacing: Spacing, contender: &str) -> Option<f64> {
        self.of(row, spacing, contender).map(median)
    }

    /// Returns the median of the ratios within each process. In an emulator an isolated call can
    /// cost less than its fence, which gives no ratio.
    pub fn ratio(&self, row: &str, spacing: Spacing, [one, other]: [&str; 2]) -> Option<f64> {
        let ones = self.of(row, spacing, one)?;
        let others = self.of(row, spacing, other)?;
        let mut ratios = Vec::new();
        for (one, other) in ones.iter().zip(others) {
            if *one > 0.0 && *other > 0.0 {
                ratios.push(one / other);
            }
        }
        if ratios.len() * 2 <= ones.len() {
            return None;
        }
        Some(median(&ratios))
    }

    /// Returns the nanoseconds of an isolated call with so many decimals.
    pub fn isolated(&self, row: &str, contender: &str, decimals: usize) -> Option<String> {
        let nanos = self.nanos(row, Spacing::Isolated, contender)?;
        Some(format!("{nanos:.decimals$}"))
    }

    /// Returns the nanoseconds in both spacings. In an emulator they can be negative.
    pub fn both(&self, row: &str, contender: &str, decimals: usize) -> Option<String> {
        let isolated = self.isolated(row, contender, decimals)?;
        let back_to_back = self.nanos(row, Spacing::BackToBack, contender)?;
        Some(format!("{isolated}, {back_to_back:.decimals$}"))
    }

    /// Returns how much the ratio of the same call measured twice differs from 1.
    pub fn noise(&self, row: &str, spacing: Spacing) -> Option<f64> {
        let ratio = self.ratio(row, spacing, CONTROL)?;
        Some((1.0 - ratio).abs())
    }

    /// Returns the text of a ratio in both spacings, or `None` if neither was measured.
    pub fn cell(&self, row: &str, pair: [&str; 2]) -> Option<String> {
        let mut is_measured = false;
        let mut texts = Vec::new();
        for spacing in Spacing::ALL {
            let text = self.text(row, spacing, pair);
            is_measured |= text.is_some();
            texts.push(text.unwrap_or_else(|| "-".into()));
        }
        if !is_measured {
            return None;
        }
        Some(texts.join(", "))
    }

    /// Returns the text of a ratio. It is `noisy` if the noise exceeds a third of its difference
    /// from 1, or 1 %.
    fn text(&self, row: &str, spacing: Spacing, pair: [&str; 2]) -> Option<String> {
        let ratio = self.ratio(row, spacing, pair)?;
        let noise = self.noise(row, spacing)?;
        let difference = (1.0 - ratio).abs().max(0.03);
        if noise > difference / 3.0 {
            return Some("noisy".into());
        }
        Some(format!("{ratio:.3}"))
    }
}
