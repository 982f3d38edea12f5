//! The instructions of a call, counted one by one outside of the vDSO: no noise touches them.

use std::collections::BTreeMap;
use std::env;
use std::process::Command;

use vdso_time_benches::harness::arguments::CHILD;
use vdso_time_benches::harness::{Row, Spacing};

use crate::foreign::{Foreign, home};
use crate::platform::breakpoint;
use crate::rows::{COUNTER, DIRECT, ELAPSED, ORDERED};
#[cfg(target_arch = "x86_64")]
use test_support::stepper::Stepper;
use crate::{deviation, foreign};

/// What asks a child to be counted.
pub const STEP: &str = "step";

const TURNS: u64 = 2;

/// How often a row is counted: a counter clock makes a new line now and then, and the more so while a tracer slows it down.
fn tries(row: &str) -> usize {
    if [ELAPSED, COUNTER, ORDERED].contains(&row) { 5 } else { 1 }
}

/// Calls each contender of a row, between breakpoints.
pub fn child(row: &Row) {
    deviation::settle();
    for contender in &row.contenders {
        for _ in 0..tries(&row.name) {
            contender.run(Spacing::BackToBack, 1000);
            for turns in [TURNS, 2 * TURNS] {
                breakpoint();
                contender.run(Spacing::BackToBack, turns);
                breakpoint();
            }
        }
    }
}

/// The instructions of a turn, by row and contender.
#[derive(Default)]
pub struct Counts(BTreeMap<[String; 2], i64>);

impl Counts {
    /// Counts all; those of Go are not, for a Go program is many threads.
    pub fn collect(rows: &[Row], foreign: &[Foreign]) -> Result<Self, String> {
        let mut counts = Self(BTreeMap::new());
        let program = env::current_exe().map_err(|error| format!("this program's path: {error}"))?;
        for row in rows {
            let mut command = Command::new(&program);
            command.args([CHILD, STEP, &row.name]);
            let names: Vec<&str> = row.contenders.iter().map(|contender| contender.name).collect();
            counts.step(command, &row.name, &names, tries(&row.name))?;
            for it in foreign.iter().filter(|it| it.name != "Go") {
                let mut command = Command::new(&it.program);
                command.args([STEP, &foreign::offsets(), &row.name]);
                // It knows fewer rows, and ends where it does not know one.
                let direct = format!("{DIRECT} ({})", it.name);
                let _ = counts.step(command, &row.name, &[it.name, &direct], 1);
            }
        }
        Ok(counts)
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn step(&mut self, _: Command, _: &str, _: &[&str], _: usize) -> Result<(), String> {
        Err("only x86_64's are executed one by one".into())
    }

    #[cfg(target_arch = "x86_64")]
    fn step(&mut self, command: Command, row: &str, contenders: &[&str], tries: usize) -> Result<(), String> {
        let error = |error| format!("{row}: {error}");
        let stepper = Stepper::start(command).map_err(error)?;
        for contender in contenders {
            let mut found = Vec::new();
            for _ in 0..tries {
                let (once, twice) = (stepper.section().map_err(error)?, stepper.section().map_err(error)?);
                let more = twice.cost.instructions - once.cost.instructions;
                if more % TURNS as i64 == 0 {
                    found.push(more / TURNS as i64);
                }
            }
            // What was found twice: the making of a line is never the same.
            let often = |count: &&i64| found.iter().filter(|other| other == count).count() > tries / 4;
            if let Some(&count) = found.iter().filter(often).min() {
                self.0.insert([row, contender].map(str::to_string), count);
            }
        }
        Ok(())
    }

    /// The instructions of a turn of the loop over `direct`.
    pub fn direct(&self, row: &str) -> Option<i64> {
        self.0.get(&[row, DIRECT].map(str::to_string)).copied()
    }

    /// By how many instructions a call is more than `direct`'s in the same program.
    pub fn more(&self, row: &str, contender: &str) -> Option<i64> {
        let direct = home(contender).map_or_else(|| DIRECT.into(), |home| format!("{DIRECT} ({home})"));
        let of = |contender: &str| self.0.get(&[row, contender].map(str::to_string)).copied();
        Some(of(contender)? - of(&direct)?)
    }
}
