//! What a bench prints, and puts into the pages.

use std::process::ExitCode;

use super::command::{Arguments, Effort};
use super::load::Load;
use super::machine;
use crate::pages::{self, Table};

#[derive(Default)]
pub struct Report {
    /// In the order in which they are printed.
    pub tables: Vec<Table>,
    /// A line for each bar that is missed.
    pub missed: Vec<String>,
    pub notes: Vec<String>,
}

impl Report {
    /// Prints the report, renews the pages if the arguments ask for it, and returns the status.
    pub(super) fn finish(mut self, arguments: &Arguments, load: &Load) -> Result<ExitCode, String> {
        let effort = if arguments.effort == Effort::Quick {
            "- options: `--quick`\n"
        } else {
            ""
        };
        let others = load
            .others()
            .map(|others| format!("- busy: {others}\n"))
            .unwrap_or_default();
        let machine = machine::describe() + effort + &others;
        println!("{machine}");
        // A filter can leave a table without rows.
        self.tables.retain(|table| !table.rows.is_empty());
        for table in &self.tables {
            println!("{table}");
        }
        for line in self.notes.iter().chain(&self.missed) {
            println!("{line}");
        }
        if arguments.write {
            // The pages have only the bars that are not met.
            for table in &mut self.tables {
                table
                    .rows
                    .retain(|row| row.last().is_none_or(|cell| cell != "met"));
            }
            let is_part = arguments.is_filtered();
            let machine = Some(machine.as_str()).filter(|_| !is_part);
            pages::write(&self.tables, machine, is_part).map_err(|error| error.to_string())?;
        }
        Ok(if arguments.check && !self.missed.is_empty() {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        })
    }
}
