//! The comparison with an earlier report.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Report;
use super::figures::{error, share};
use crate::arguments::GroupBy;
use crate::error::{Error, Result};

/// The part of a `--json` report that a comparison needs.
#[derive(Debug, Deserialize)]
pub(crate) struct Shares {
    format: u32,
    method: String,
    /// None in a report of an older version.
    group_by: Option<GroupBy>,
    system_wide: bool,
    #[serde(flatten)]
    whole: Amounts,
    processes: Vec<ProcessAmounts>,
}

/// The samples of processes, and how many of these are in clock reads.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct Amounts {
    samples: u64,
    records: u64,
    /// None if no share is known.
    percent_error: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct ProcessAmounts {
    name: String,
    #[serde(flatten)]
    all: Amounts,
    callers: Vec<CallerAmounts>,
}

#[derive(Debug, Deserialize)]
struct CallerAmounts {
    function: String,
    called_by: Option<Function>,
    records: u64,
}

#[derive(Debug, Deserialize)]
struct Function {
    function: String,
}

/// The shares of two reports.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Comparison {
    /// Whether both reports measure the same CPU time: all of it, or only the CPU time in user
    /// space.
    #[serde(skip)]
    pub(crate) is_same_measure: bool,
    #[serde(flatten)]
    pub(crate) whole: Change,
    pub(crate) processes: Vec<ProcessChange>,
}

/// The processes of one name in two reports.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ProcessChange {
    pub(crate) name: String,
    #[serde(flatten)]
    pub(crate) change: Change,
    pub(crate) callers: Vec<CallerChange>,
}

/// A caller in two reports.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct CallerChange {
    pub(crate) function: String,
    pub(crate) called_by: Option<String>,
    #[serde(flatten)]
    pub(crate) change: Change,
}

/// A share in two reports. The fields of a report that does not contain the share are None.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Change {
    pub(crate) before_percent: Option<f64>,
    pub(crate) before_percent_error: Option<f64>,
    pub(crate) percent: Option<f64>,
    pub(crate) percent_error: Option<f64>,
    /// Whether the difference is larger than both errors together. None if one of the shares is not
    /// known, or if the reports do not measure the same CPU time.
    pub(crate) exceeds_errors: Option<bool>,
}

/// A share and its error, in percent.
#[derive(Clone, Copy, Debug)]
struct Percent {
    share: f64,
    error: f64,
}

/// The processes of one name, merged into one row. Another run has other process ids, so rows are
/// matched by name.
#[derive(Debug, Default)]
struct Merged {
    samples: u64,
    records: u64,
    /// The part of the error that does not come from chance, as a number of samples. For example,
    /// each sample in an unidentified system call might be in a read. None if the share of one of
    /// the processes is not known.
    unknown: Option<f64>,
    callers: BTreeMap<Caller, u64>,
}

/// A function and its caller. Their line numbers are left out, because these differ between two
/// builds.
type Caller = (String, Option<String>);

impl Shares {
    /// Reads an earlier report of `--json`, which is compared with a report that has this grouping.
    ///
    /// # Errors
    /// If the file cannot be read, or if it does not contain a report whose shares can be compared.
    pub(crate) fn read(path: &Path, grouping: GroupBy) -> Result<Self> {
        let file = File::open(path).map_err(|error| not_read(path, &error))?;
        let shares: Self = serde_json::from_reader(BufReader::new(file)).map_err(|error| {
            let reason = format!("it is not one report of `vdso-who --json`: {error}");
            not_read(path, &reason)
        })?;
        if shares.format != 1 {
            return Err(not_read(
                path,
                &"a newer vdso-who wrote it, so compare with that version",
            ));
        }
        if shares.method != "sampled" {
            let reason = "it contains counted reads and no shares, so measure without --exact";
            return Err(not_read(path, &reason));
        }
        if let Some(before) = shares.group_by {
            if names(before) != names(grouping) {
                let reason = "its rows are of another kind, so use the same --group-by as then";
                return Err(not_read(path, &reason));
            }
        }
        Ok(shares)
    }

    /// Returns the shares of a report, as if it had been written to a file and read back.
    fn of(report: &Report) -> Result<Self> {
        let json = serde_json::to_value(report)?;
        let shares = serde_json::from_value(json)?;
        Ok(shares)
    }

    /// Merges the processes with the same name.
    fn merged(&self) -> BTreeMap<&str, Merged> {
        let mut names = BTreeMap::<_, Merged>::new();
        for process in &self.processes {
            let first = Merged {
                unknown: Some(0.0),
                ..Merged::default()
            };
            let merged = names.entry(process.name.as_str()).or_insert(first);
            merged.add(process);
        }
        names
    }
}

impl Merged {
    fn add(&mut self, process: &ProcessAmounts) {
        let Amounts {
            samples,
            records,
            percent_error,
        } = process.all;
        self.samples += samples;
        self.records += records;
        self.unknown = match (self.unknown, percent_error) {
            (Some(unknown), Some(percent)) => {
                let beyond_chance = percent / 100.0 - error(records, samples);
                Some(unknown + beyond_chance.max(0.0) * samples as f64)
            }
            _ => None,
        };
        for caller in &process.callers {
            let called_by = caller.called_by.as_ref();
            let key = (
                caller.function.clone(),
                called_by.map(|frame| frame.function.clone()),
            );
            *self.callers.entry(key).or_default() += caller.records;
        }
    }

    fn percent(&self) -> Option<Percent> {
        self.percent_of(self.records)
    }

    /// Returns the share of a caller. The share is 0 if the caller has no records.
    fn percent_of_caller(&self, caller: &Caller) -> Option<Percent> {
        let records = self.callers.get(caller).copied().unwrap_or(0);
        self.percent_of(records)
    }

    fn percent_of(&self, records: u64) -> Option<Percent> {
        let beyond_chance = self.unknown? / self.samples.max(1) as f64;
        let error = error(records, self.samples) + beyond_chance;
        Some(Percent {
            share: 100.0 * share(records, self.samples),
            error: 100.0 * error.min(1.0),
        })
    }
}

impl Amounts {
    fn percent(self) -> Option<Percent> {
        let error = self.percent_error?;
        Some(Percent {
            share: 100.0 * share(self.records, self.samples),
            error,
        })
    }
}

impl Change {
    fn new(before: Option<Percent>, now: Option<Percent>, is_same_measure: bool) -> Self {
        let mut change = Self {
            before_percent: before.map(|percent| percent.share),
            before_percent_error: before.map(|percent| percent.error),
            percent: now.map(|percent| percent.share),
            percent_error: now.map(|percent| percent.error),
            ..Self::default()
        };
        if !is_same_measure {
            return change;
        }
        if let (Some(before), Some(now)) = (before, now) {
            let difference = (now.share - before.share).abs();
            let errors = now.error + before.error;
            change.exceeds_errors = Some(difference > errors);
        }
        change
    }

    /// Returns by how many percentage points the share changed.
    pub(crate) fn difference(&self) -> Option<f64> {
        Some(self.percent? - self.before_percent?)
    }

    /// Returns the larger of the two shares.
    fn larger(&self) -> f64 {
        let before = self.before_percent.unwrap_or(0.0);
        before.max(self.percent.unwrap_or(0.0))
    }
}

impl Comparison {
    /// Compares a report with an earlier one.
    pub(super) fn new(earlier: &Shares, report: &Report) -> Result<Self> {
        let now = Shares::of(report)?;
        let is_same_measure = earlier.system_wide == now.system_wide;
        let whole = Change::new(
            earlier.whole.percent(),
            now.whole.percent(),
            is_same_measure,
        );
        let before = earlier.merged();
        let now = now.merged();
        let names: BTreeSet<_> = before.keys().chain(now.keys()).collect();
        let mut processes = Vec::new();
        for name in names {
            let both = Both {
                before: before.get(name),
                now: now.get(name),
                is_same_measure,
            };
            processes.push(ProcessChange {
                name: (*name).to_owned(),
                change: both.change(Merged::percent),
                callers: both.callers(),
            });
        }
        // Most processes of a host read no clock, so they have no row.
        processes.retain(|process| process.change.larger() > 0.0);
        processes.sort_by(|a, b| b.change.larger().total_cmp(&a.change.larger()));
        Ok(Self {
            is_same_measure,
            whole,
            processes,
        })
    }
}

/// The processes of one name in the two reports. None for a report that contains no such process.
struct Both<'a> {
    before: Option<&'a Merged>,
    now: Option<&'a Merged>,
    is_same_measure: bool,
}

impl Both<'_> {
    fn change(&self, percent: impl Fn(&Merged) -> Option<Percent>) -> Change {
        let before = self.before.and_then(&percent);
        let now = self.now.and_then(&percent);
        Change::new(before, now, self.is_same_measure)
    }

    /// Returns the callers of both reports, those with the largest shares first.
    fn callers(&self) -> Vec<CallerChange> {
        let mut keys = BTreeSet::new();
        if let Some(before) = self.before {
            keys.extend(before.callers.keys());
        }
        if let Some(now) = self.now {
            keys.extend(now.callers.keys());
        }
        let mut callers = Vec::new();
        for caller in keys {
            let (function, called_by) = caller.clone();
            callers.push(CallerChange {
                function,
                called_by,
                change: self.change(|merged| merged.percent_of_caller(caller)),
            });
        }
        callers.sort_by(|a, b| b.change.larger().total_cmp(&a.change.larger()));
        callers
    }
}

/// Returns the grouping whose rows have the same names. Rows are matched by name, and processes of
/// the same name are merged, so a report with a row for each process can be compared with one that
/// has a row for each name.
fn names(grouping: GroupBy) -> GroupBy {
    match grouping {
        GroupBy::Process => GroupBy::Name,
        other => other,
    }
}

fn not_read(path: &Path, reason: &dyn Display) -> Error {
    format!("cannot compare with {}: {reason}", path.display()).into()
}
