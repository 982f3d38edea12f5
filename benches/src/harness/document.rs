//! The tables of a bench: printed, and written into the documents.
//!
//! The table NAME stands between `<!-- generated NAME -->` and `<!-- /generated -->`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use super::command::{Arguments, Effort};
use super::machine;

const DOCUMENTS: [&str; 4] = ["README.md", "docs/BENCHMARKS.md", "docs/LOGGING.md", "docs/PRECISION.md"];
const END: &str = "<!-- /generated -->";

#[derive(Default)]
pub struct Report {
    /// In the order in which they are printed.
    pub tables: Vec<Table>,
    /// A line for each bar that is missed.
    pub missed: Vec<String>,
    pub notes: Vec<String>,
}

pub struct Table {
    name: &'static str,
    head: Vec<String>,
    /// The rows, each as long as the head.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates a table without rows. The documents refer to it by its name.
    pub fn new(name: &'static str, head: &[&str]) -> Self {
        Self { name, head: head.iter().map(ToString::to_string).collect(), rows: Vec::new() }
    }

    pub fn markdown(&self) -> String {
        let lines = || std::iter::once(&self.head).chain(&self.rows);
        let width = |column: usize| lines().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let mut text = String::new();
        for (number, line) in lines().enumerate() {
            for (column, (cell, &width)) in line.iter().zip(&widths).enumerate() {
                // A String accepts every write.
                let _ = if column == 0 {
                    write!(text, "| {cell:<width$} ")
                } else {
                    write!(text, "| {cell:>width$} ")
                };
            }
            text.push_str("|\n");
            if number == 0 {
                let rules = widths.iter().skip(1).map(|&width| format!("|{}:", "-".repeat(width + 1)));
                let _ = writeln!(text, "|{}{}|", "-".repeat(widths[0] + 2), rules.collect::<String>());
            }
        }
        text
    }
}

impl Report {
    /// Prints the report, renews the documents if the arguments ask for it, and returns the status.
    pub fn finish(&self, arguments: &Arguments) -> Result<ExitCode, String> {
        println!("{}", machine::describe());
        // A filter can leave a table without rows.
        for table in self.tables.iter().filter(|table| !table.rows.is_empty()) {
            println!("{}", table.markdown());
        }
        for line in self.notes.iter().chain(&self.missed) {
            println!("{line}");
        }
        if arguments.write {
            self.write(arguments)?;
        }
        Ok(if arguments.check && !self.missed.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }

    fn write(&self, arguments: &Arguments) -> Result<(), String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let effort = if arguments.effort == Effort::Quick { "- options: `--quick`\n" } else { "" };
        let machine = machine::describe() + effort;
        // The documents have only the bars that are not met.
        let is_shown = |row: &&Vec<String>| row.last().is_none_or(|cell| cell != "met");
        // What was not measured keeps its figures.
        let tables =
            self.tables.iter().filter(|table| !table.rows.is_empty()).map(|Table { name, head, rows }| {
                let rows = rows.iter().filter(is_shown).cloned().collect();
                (*name, Table { name, head: head.clone(), rows }.markdown())
            });
        let is_part = arguments.is_filtered();
        let tables: Vec<(&str, String)> = tables.collect();
        for document in DOCUMENTS {
            let file = root.join(document);
            let old = fs::read_to_string(&file).map_err(|error| format!("{document}: {error}"))?;
            let mut new = old.clone();
            for (name, body) in &tables {
                new = fill(&new, name, body, is_part);
            }
            // A document without these tables keeps the machine of its own.
            if new != old && !is_part {
                new = fill(&new, "machine", &machine, is_part);
            }
            fs::write(&file, new).map_err(|error| format!("{document}: {error}"))?;
        }
        Ok(())
    }
}

/// Returns the document with another body in the section NAME, if it has such a section. A part of
/// a table does not replace it.
fn fill(text: &str, name: &str, body: &str, is_part: bool) -> String {
    let begin = format!("<!-- generated {name} -->\n");
    let parts = text.split_once(&begin).and_then(|(head, rest)| Some((head, rest.split_once(END)?)));
    match parts {
        Some((head, (old, tail))) if !is_part || body.lines().count() >= old.lines().count() => {
            [head, &begin, body, END, tail].concat()
        }
        _ => text.into(),
    }
}
