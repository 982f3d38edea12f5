//! Tables and plots: printed, and left below the target folder for `cargo xtask bench-table`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::arguments::Arguments;
use super::machine;

/// What one bench found.
pub struct Report {
    bench: &'static str,
    /// In order.
    pub tables: Vec<Table>,
    /// In order.
    pub bars: Vec<Bar>,
    /// What else there is to say.
    pub notes: Vec<String>,
}

/// A table.
pub struct Table {
    /// One word, by which a document names it.
    pub name: &'static str,
    /// The first row.
    pub head: Vec<String>,
    /// The others, as long as the first.
    pub rows: Vec<Vec<String>>,
}

/// A bar of a plot.
pub struct Bar {
    /// The plot, one word.
    pub plot: &'static str,
    /// The group within the plot.
    pub group: String,
    /// Whose bar it is.
    pub name: &'static str,
    /// How long it is.
    pub nanos: f64,
}

impl Report {
    /// An empty report of the bench of this name.
    #[must_use]
    pub const fn new(bench: &'static str) -> Self {
        Self { bench, tables: Vec::new(), bars: Vec::new(), notes: Vec::new() }
    }

    /// Prints it, and, if everything was measured, writes it to `vdso-time-benches/BENCH.tsv` in cargo's target folder, of which
    /// `tmpdir` (`CARGO_TARGET_TMPDIR`) is a folder.
    ///
    /// # Errors
    /// The file could not be written.
    pub fn finish(&self, arguments: &Arguments, tmpdir: &str) -> Result<(), String> {
        let mut lines = String::new();
        let mut line = |kind: &str, fields: &[String]| {
            let _ = writeln!(lines, "{kind}\t{}", fields.join("\t")); // a String takes every write
        };
        for (name, value) in machine::describe() {
            println!("{name}: {value}");
            line("machine", &[name.into(), value]);
        }
        // A filter may leave none of a table's rows.
        for table in self.tables.iter().filter(|table| !table.rows.is_empty()) {
            print!("\n{}", table.text());
            line("table", &[table.name.into()]);
            line("head", &table.head);
            table.rows.iter().for_each(|row| line("row", row));
        }
        for bar in &self.bars {
            line("bar", &[bar.plot.into(), bar.group.clone(), bar.name.into(), bar.nanos.to_string()]);
        }
        for note in &self.notes {
            println!("\n{note}");
            line("note", std::slice::from_ref(note));
        }
        if !arguments.are_complete() {
            return Ok(());
        }
        let folder = Path::new(tmpdir).with_file_name("vdso-time-benches");
        let file = folder.join(format!("{}.tsv", self.bench));
        fs::create_dir_all(&folder)
            .and_then(|()| fs::write(&file, lines))
            .map_err(|error| format!("{}: {error}", file.display()))
    }
}

impl Table {
    /// The table in columns.
    fn text(&self) -> String {
        let rows = || std::iter::once(&self.head).chain(&self.rows);
        let width = |column: usize| rows().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let mut text = String::new();
        for row in rows() {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                let _ = write!(line, "{cell:<width$}  "); // a String takes every write
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}
