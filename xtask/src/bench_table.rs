//! `cargo xtask bench-table`: what the benches left below the target folder, as sections of the documents and as plots.
//!
//! A document has a section NAME between `<!-- bench-table NAME -->` and `<!-- /bench-table -->`; without a name it is the summary.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use crate::bench_table_plot::{self, Bar};
use crate::cache::{at, create, write};
use crate::{Error, unknown_argument, workspace};

/// The benches that leave a report, and the commands that make it; the last is read only if it is named.
const BENCHES: &[(&str, &str)] = &[
    ("ratios", "cargo bench --bench ratios"),
    ("time_now", "cargo bench --bench time_now"),
    ("discovery", "cargo bench --bench discovery"),
    ("trace_table", "cargo bench --bench trace_table"),
    (PEERS, "cargo run --release --manifest-path benches/peers/Cargo.toml"),
];
/// What the names of its sections begin with, too.
const PEERS: &str = "peers";
const DOCUMENTS: &[&str] = &["README.md", "BENCHMARKS.md"];
const PLOTS: &str = "docs/benchmarks";

const SUMMARY: &str = "summary";
const MACHINE: &str = "machine";

/// All reports.
#[derive(Default)]
struct Results {
    /// Names and values; all benches ran on the same.
    machine: Vec<Vec<String>>,
    tables: Vec<Table>,
    bars: Vec<Bar>,
    /// Whether they are the peers', whose sections the others leave alone, and they theirs.
    is_peers: bool,
}

/// A table, its head first.
struct Table {
    name: String,
    command: &'static str,
    rows: Vec<Vec<String>>,
    notes: String,
}

pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, Error> {
    let (mut is_written, mut is_peers) = (false, false);
    for argument in arguments {
        match argument.as_str() {
            "--write" => is_written = true,
            PEERS => is_peers = true,
            other => return Err(unknown_argument(other)),
        }
    }
    let results = Results::read(&workspace::target(), is_peers)?;
    if is_written {
        results.write(&workspace::root())?;
    } else {
        results.print()?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Results {
    /// The peers, or the others.
    fn read(target: &Path, is_peers: bool) -> Result<Self, String> {
        let mut results = Self { is_peers, ..Self::default() };
        for &(bench, command) in BENCHES.iter().filter(|(bench, _)| (*bench == PEERS) == is_peers) {
            let file = target.join("vdso-time-benches").join(format!("{bench}.tsv"));
            let text = fs::read_to_string(&file)
                .map_err(|error| format!("{}; `{command}` makes it", at(&file, &error)))?;
            results.add(command, &text)?;
        }
        Ok(results)
    }

    /// Adds a report: lines whose first field says what they are.
    fn add(&mut self, command: &'static str, text: &str) -> Result<(), String> {
        let mut machine = Vec::new();
        for line in text.lines() {
            let mut fields: Vec<String> = line.split('\t').map(str::to_string).collect();
            let kind = fields.remove(0);
            match (kind.as_str(), fields.as_slice()) {
                ("machine", [_, _]) => machine.push(fields),
                ("table", [name]) => {
                    self.tables.push(Table {
                        name: name.clone(),
                        command,
                        rows: Vec::new(),
                        notes: String::new(),
                    });
                }
                ("head" | "row" | "note", [first, ..]) => {
                    let table =
                        self.tables.last_mut().ok_or_else(|| format!("{command}: `{line}`: no table"))?;
                    if kind == "note" {
                        let _ = write!(table.notes, "\n{first}.\n"); // a String takes every write
                    } else {
                        table.rows.push(fields);
                    }
                }
                ("bar", [plot, group, name, nanos]) => {
                    let nanos = nanos.parse().map_err(|error| format!("{command}: {nanos}: {error}"))?;
                    let (plot, group, name) = (plot.clone(), group.clone(), name.clone());
                    self.bars.push(Bar { plot, group, name, nanos });
                }
                _ => return Err(format!("{command}: `{line}` is no line of a report: run it again")),
            }
        }
        if !self.machine.is_empty() && self.machine != machine {
            return Err(format!(
                "`{command}` ran on another machine than `{}`: run both again",
                BENCHES[0].1
            ));
        }
        self.machine = machine;
        Ok(())
    }

    fn print(&self) -> Result<(), String> {
        let names = self.tables.iter().map(|table| table.name.as_str());
        for name in [MACHINE].into_iter().chain(names).filter(|name| self.has(name)) {
            println!("<!-- bench-table {name} -->\n{}{END}\n", self.section(name)?);
        }
        Ok(())
    }

    fn write(&self, root: &Path) -> Result<(), String> {
        for document in DOCUMENTS {
            let file = root.join(document);
            let text = fs::read_to_string(&file).map_err(|error| at(&file, &error))?;
            let section = |name: &str| if self.has(name) { self.section(name) } else { kept(&text, name) };
            let filled = fill(&text, MARKERS, section).map_err(|error| format!("{document}: {error}"))?;
            if filled != text {
                write(&file, &filled)?;
            }
        }
        let folder = root.join(PLOTS);
        create(&folder)?;
        let mut plots: Vec<&str> = self.bars.iter().map(|bar| bar.plot.as_str()).collect();
        plots.dedup();
        for plot in plots {
            let bars: Vec<&Bar> = self.bars.iter().filter(|bar| bar.plot == plot).collect();
            write(&folder.join(format!("{plot}.svg")), &bench_table_plot::svg(&bars))?;
        }
        Ok(())
    }

    /// Whether a section is theirs.
    fn has(&self, name: &str) -> bool {
        name.starts_with(PEERS) == self.is_peers
    }

    /// The lines of a section.
    fn section(&self, name: &str) -> Result<String, String> {
        if name == MACHINE {
            let lines: Vec<String> = self.machine.iter().map(|pair| pair.join(": ")).collect();
            return Ok(format!("- {}\n", lines.join("\n- ")));
        }
        let table = self.tables.iter().find(|table| table.name == name);
        let table = table.ok_or_else(|| format!("no bench has a table `{name}`"))?;
        let mut text = table.markdown();
        let _ = write!(text, "\nPrinted by `{}`", table.command); // a String takes every write
        if name == SUMMARY {
            let machine: Vec<&str> = self.machine.iter().map(|pair| pair[1].as_str()).collect();
            let _ = write!(text, " on {}", machine.join("; "));
        }
        text.push_str(".\n");
        text.push_str(&table.notes);
        Ok(text)
    }
}

impl Table {
    fn markdown(&self) -> String {
        let mut text = String::new();
        for (number, row) in self.rows.iter().enumerate() {
            let _ = writeln!(text, "| {} |", row.join(" | ")); // a String takes every write
            if number == 0 {
                let _ = writeln!(text, "|---|{}", "---:|".repeat(row.len().saturating_sub(1)));
            }
        }
        text
    }
}

/// The lines of a section as it is.
fn kept(text: &str, name: &str) -> Result<String, String> {
    let section = text.split(MARKERS[0]).skip(1).find_map(|rest| {
        let (its_name, body) = rest.split_once("-->\n")?;
        let its_name = if its_name.trim().is_empty() { SUMMARY } else { its_name.trim() };
        (its_name == name).then(|| body.split_once(END))?
    });
    section.map(|(body, _)| body.to_string()).ok_or_else(|| format!("section `{name}` has no end"))
}

const END: &str = "<!-- /bench-table -->";
const MARKERS: [&str; 2] = ["<!-- bench-table", END];

/// The document with the contents of its sections replaced.
pub(crate) fn fill(
    text: &str,
    [begin, end]: [&str; 2],
    section: impl Fn(&str) -> Result<String, String>,
) -> Result<String, String> {
    let (mut filled, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once(begin) {
        let (name, body) = after.split_once("-->").ok_or("a marker has no end")?;
        let (_, behind) = body.split_once(end).ok_or_else(|| format!("a section has no `{end}`"))?;
        let contents = section(if name.trim().is_empty() { SUMMARY } else { name.trim() })?;
        let _ = write!(filled, "{before}{begin}{name}-->\n{contents}{end}"); // a String takes every write
        rest = behind;
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_replaced_and_nothing_else() {
        let section = |name: &str| Ok(format!("<{name}>\n"));
        let text = "a\n<!-- bench-table -->\nold\n<!-- /bench-table -->\nb <!-- bench-table x --><!-- /bench-table -->c";
        let filled = "a\n<!-- bench-table -->\n<summary>\n<!-- /bench-table -->\nb <!-- bench-table x -->\n<x>\n<!-- /bench-table -->c";
        assert_eq!(fill(text, MARKERS, section).as_deref(), Ok(filled));
        assert_eq!(fill(filled, MARKERS, section).as_deref(), Ok(filled));
        assert!(fill("<!-- bench-table -->\nno end", MARKERS, section).is_err());
    }

    #[test]
    fn the_sections_of_others_are_kept() {
        let text =
            "<!-- bench-table -->\na\n<!-- /bench-table --><!-- bench-table b -->\nc\n<!-- /bench-table -->";
        assert_eq!(kept(text, SUMMARY).as_deref(), Ok("a\n"));
        assert_eq!(kept(text, "b").as_deref(), Ok("c\n"));
        assert!(kept(text, "d").is_err());
        assert_eq!(fill(text, MARKERS, |name| kept(text, name)).as_deref(), Ok(text));
    }

    #[test]
    fn a_report_is_read() {
        let mut results = Results::default();
        let report = "machine\tCPU\tx\ntable\tt\nhead\ta\tb\nrow\t1\t2\nnote\tn\nbar\tp\tg\tn\t1.5\n";
        results.add("cargo bench --bench ratios", report).unwrap();
        let section = results.section("t").unwrap();
        assert_eq!(
            section,
            "| a | b |\n|---|---:|\n| 1 | 2 |\n\nPrinted by `cargo bench --bench ratios`.\n\nn.\n"
        );
        assert!(results.section("u").is_err());
        assert!(results.add("time_now", "machine\tCPU\ty\n").is_err());
        assert!(results.add("time_now", "what\n").is_err());
    }
}
