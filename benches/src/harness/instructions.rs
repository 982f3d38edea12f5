//! The instructions of a call outside the vDSO, counted one by one. Noise does not affect them.

use std::collections::BTreeMap;

use super::assembly::breakpoint;
use super::samples::DIRECT;
use super::{Row, Spacing};

/// Asks a child process to run a row between breakpoints.
pub const STEP: &str = "step";

const CALLS: u64 = 2;
/// The counter clock sometimes starts a new segment, so the median counts.
const TRIES: usize = 5;

/// Runs each contender of a row between breakpoints. A child process does this.
pub fn child(row: &Row) {
    for contender in &row.contenders {
        for _ in 0..TRIES {
            contender.run(Spacing::BackToBack, 1000);
            for calls in [CALLS, 2 * CALLS] {
                breakpoint();
                contender.run(Spacing::BackToBack, calls);
                breakpoint();
            }
        }
    }
}

/// The instructions of a call, with its share of the loop, by row and contender.
#[derive(Default)]
pub struct Counts(BTreeMap<(String, &'static str), i64>);

impl Counts {
    /// Counts the instructions of all contenders of the rows.
    #[cfg(target_arch = "x86_64")]
    pub fn collect(rows: &[Row]) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut counts = BTreeMap::new();
        for row in rows {
            let mut command = std::process::Command::new(&program);
            command.args([super::command::CHILD, STEP, &row.name]);
            let error = |error| format!("instructions are not counted: {}: {error}", row.name);
            let stepper = test_support::stepper::Stepper::start(command).map_err(error)?;
            for contender in &row.contenders {
                let mut found = [0; TRIES];
                for count in &mut found {
                    let [once, twice] = [stepper.section(), stepper.section()];
                    let more =
                        twice.map_err(error)?.cost.instructions - once.map_err(error)?.cost.instructions;
                    *count = more / CALLS as i64;
                }
                found.sort_unstable();
                counts.insert((row.name.clone(), contender.name), found[TRIES / 2]);
            }
        }
        Ok(Self(counts))
    }

    /// Counts nothing on this architecture.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn collect(_: &[Row]) -> Result<Self, String> {
        Err("instructions are not counted: that needs x86_64".into())
    }

    /// Returns how many instructions a call has more than the call of the vDSO's own function.
    pub fn more(&self, row: &str, contender: &'static str) -> String {
        let of = |contender| self.0.get(&(row.to_string(), contender));
        of(contender).zip(of(DIRECT)).map_or_else(String::new, |(it, direct)| format!("{:+}", it - direct))
    }
}
