//! The tables: what each clock did in each history, and how often each clock was wrong.

use std::collections::HashMap;

use vdso_time_benches::pages::Table;

use crate::clocks::{Contender, LIBRARIES, OURS, PROGRAMS};
use crate::histories::{self, History};
use crate::watch::{self, Record};

/// The records of all clocks in all histories, by the names of both.
pub(crate) struct Results {
    histories: Vec<History>,
    records: HashMap<(String, &'static str), Record>,
}

/// A figure of the summary: whether a record counts.
type Count = fn(&Record) -> bool;

const COUNTS: [(&str, Count); 4] = [
    ("off by more than 10 us", Record::is_wrong),
    ("still off at the end", Record::stays_wrong),
    ("went back", |record| record.back > 0),
    ("stood still", |record| record.still > 0),
];

impl Results {
    /// Plays every history with every clock.
    pub(crate) fn new() -> Self {
        let histories = histories::all();
        let mut records = HashMap::new();
        for history in &histories {
            for contender in contenders() {
                let record = watch::play(history, contender, u128::MAX);
                records.insert((history.name.clone(), contender.name), record);
            }
        }
        Self { histories, records }
    }

    fn record(&self, history: &History, contender: Contender) -> &Record {
        &self.records[&(history.name.clone(), contender.name)]
    }

    /// Returns the table of the errors of these clocks.
    pub(crate) fn errors(&self, name: &str, contenders: &[Contender]) -> Table {
        let names = contenders.iter().map(|contender| contender.name);
        let mut table = Table::new(name, std::iter::once("largest error").chain(names));
        for history in &self.histories {
            let cells = contenders
                .iter()
                .map(|&contender| Some(cell(self.record(history, contender))));
            table.add(&history.name, cells);
        }
        table
    }

    /// Returns the table of the numbers of histories in which each clock was wrong.
    pub(crate) fn summary(&self) -> Table {
        let unit = format!("of {} histories", self.histories.len());
        let names = COUNTS.map(|(name, _)| name);
        let mut table = Table::new("torture", std::iter::once(&*unit).chain(names));
        for contender in contenders() {
            let cells = COUNTS.map(|(_, counts)| {
                let records = self.histories.iter().map(|of| self.record(of, contender));
                Some(records.filter(|record| counts(record)).count().to_string())
            });
            table.add(contender.name, cells);
        }
        table
    }

    /// Returns the table of what each clock says about itself in two histories.
    pub(crate) fn sayings(&self, histories: [&str; 2]) -> Table {
        let mut table = Table::new("torture-says", ["clock", histories[0], histories[1]]);
        for contender in contenders() {
            let cells = histories.map(|name| {
                let says = &self.records[&(name.to_owned(), contender.name)].says;
                Some(if says.is_empty() {
                    "nothing".into()
                } else {
                    says.clone()
                })
            });
            table.add(contender.name, cells);
        }
        table
    }
}

pub(crate) fn contenders() -> impl Iterator<Item = Contender> {
    let groups = [&OURS[..], &LIBRARIES, &PROGRAMS];
    groups.into_iter().flatten().copied()
}

fn cell(record: &Record) -> String {
    let mut cell = duration(record.error);
    if record.stays_wrong() {
        cell += " …";
    }
    if record.back > 0 {
        cell += " ↓";
    }
    if record.still > 0 {
        cell += " =";
    }
    cell
}

/// Returns a time with its unit, and a digit after the point if there is one before it.
fn duration(nanos: u64) -> String {
    // A unit is used from where a smaller one would be rounded to 1000.
    let (divisor, unit) = match nanos {
        0..1_000 => return format!("{nanos} ns"),
        1_000..999_500 => (1e3, "us"),
        999_500..999_500_000 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    let value = nanos as f64 / divisor;
    let digits = usize::from(value < 9.95);
    format!("{value:.digits$} {unit}")
}
