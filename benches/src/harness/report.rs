//! The report of a bench, which it prints and puts into the pages.

use std::fmt::Write as _;
use std::process::ExitCode;

use super::command::{Arguments, Effort};
use super::load::Load;
use super::machine;
use crate::pages::{self, Table};

#[derive(Default)]
pub struct Report {
    /// In the order in which they are printed.
    pub tables: Vec<Table>,
    /// A line for each limit that is missed.
    pub missed: Vec<String>,
    pub notes: Vec<String>,
}

impl Report {
    /// Prints the report, renews the pages if the arguments ask for it, and returns the status.
    pub(super) fn finish(mut self, arguments: &Arguments, load: &Load) -> Result<ExitCode, String> {
        let mut machine = machine::describe();
        if arguments.effort == Effort::Quick {
            machine += "- options: `--quick`\n";
        }
        if let Some(others) = load.others() {
            let _ = writeln!(machine, "- busy: {others}");
        }
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
            self.write(&machine, arguments.is_filtered())?;
        }
        if arguments.check && !self.missed.is_empty() {
            return Ok(ExitCode::FAILURE);
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Renews the pages. A run with only some of the rows does not change the page's description of
    /// the machine.
    fn write(&mut self, machine: &str, is_part: bool) -> Result<(), String> {
        // The pages have only the limits that are not met.
        for table in &mut self.tables {
            table
                .rows
                .retain(|row| row.last().is_none_or(|cell| cell != "met"));
        }
        let machine = if is_part { None } else { Some(machine) };
        pages::write(&self.tables, machine, is_part).map_err(|error| error.to_string())
    }
}
