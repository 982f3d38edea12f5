//! The pages with generated tables, and the charts of these tables.
//!
//! The table NAME is between `<!-- generated NAME -->` and `<!-- /generated -->`. If the first is
//! `<!-- generated NAME chart=3 TITLE -->`, `docs/charts/NAME.svg` shows its first three columns of
//! numbers.

mod chart;

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The measured crate, in every table.
pub const OURS: &str = "vdso-time";

const BEGIN: &str = "<!-- generated ";
const END: &str = "<!-- /generated -->";

/// A table. Its first column names the rows.
pub struct Table {
    name: String,
    head: Vec<String>,
    /// The rows, each as long as the head.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates a table without rows. A page refers to it by its name.
    pub fn new<'a>(name: &str, head: impl IntoIterator<Item = &'a str>) -> Self {
        let head = head.into_iter().map(String::from);
        Self {
            name: name.into(),
            head: head.collect(),
            rows: Vec::new(),
        }
    }

    /// Creates a table with these rows and columns, from the text of each cell.
    pub fn of<R: AsRef<str>>(
        name: &str,
        unit: &'static str,
        rows: impl IntoIterator<Item = R>,
        columns: &[&'static str],
        cell: impl Fn(&str, &'static str) -> Option<String>,
    ) -> Self {
        let mut head = vec![unit];
        head.extend(columns);
        let mut table = Self::new(name, head);
        for row in rows {
            let row = row.as_ref();
            let mut cells = Vec::new();
            for column in columns {
                cells.push(cell(row, column));
            }
            table.add(row, cells);
        }
        table
    }

    /// Adds a row, unless it has no text but its name.
    pub fn add(&mut self, row: &str, cells: impl IntoIterator<Item = Option<String>>) {
        let mut line = vec![row.to_owned()];
        let mut has_text = false;
        for cell in cells {
            let cell = cell.unwrap_or_default();
            has_text |= !cell.is_empty();
            line.push(cell);
        }
        if has_text {
            self.rows.push(line);
        }
    }

    /// Reads the lines of a table in a text.
    pub fn parse(name: &str, text: &str) -> Self {
        let mut lines = text.lines().filter_map(cells);
        let head = lines.next().unwrap_or_default();
        Self {
            name: name.into(),
            head,
            rows: lines.skip(1).collect(),
        }
    }

    /// Prints the table. If told to, puts it into its page, with the rows of the page's table that
    /// have another of these names, which give the order.
    ///
    /// # Errors
    /// If no page has markers for it.
    pub fn show(mut self, write: bool, names: &[String]) -> io::Result<()> {
        if write {
            for page in pages()? {
                let page = fs::read_to_string(page)?;
                if let Some([_, old, _]) = section(&page, &self.name) {
                    let old = Self::parse("", old);
                    self.merge(old, names);
                }
            }
        }
        println!("{self}");
        if write {
            self::write(&[self], None, false)
        } else {
            Ok(())
        }
    }

    fn merge(&mut self, old: Self, names: &[String]) {
        for row in old.rows {
            let name = &row[0];
            let is_new = self.rows.iter().any(|new| new[0] == *name);
            let has_all_columns = row.len() == self.head.len();
            if has_all_columns && names.contains(name) && !is_new {
                self.rows.push(row);
            }
        }
        self.rows.sort_by_key(|row| {
            let place = names.iter().position(|name| *name == row[0]);
            place.unwrap_or(names.len())
        });
    }
}

/// The lines of Markdown. Columns of numbers are aligned at the right.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_line(f, &self.head)?;
        for column in 0..self.head.len() {
            let dashes = "-".repeat(self.width(column) + 1);
            let end = if self.is_right(column) { ':' } else { '-' };
            write!(f, "|{dashes}{end}")?;
        }
        writeln!(f, "|")?;
        for row in &self.rows {
            self.write_line(f, row)?;
        }
        Ok(())
    }
}

impl Table {
    fn write_line(&self, f: &mut fmt::Formatter<'_>, line: &[String]) -> fmt::Result {
        for (column, cell) in line.iter().enumerate() {
            let width = self.width(column);
            if self.is_right(column) {
                write!(f, "| {cell:>width$} ")?;
            } else {
                write!(f, "| {cell:<width$} ")?;
            }
        }
        writeln!(f, "|")
    }

    /// Returns the length of the longest cell.
    fn width(&self, column: usize) -> usize {
        let mut width = self.head[column].chars().count();
        for row in &self.rows {
            let length = row[column].chars().count();
            width = width.max(length);
        }
        width
    }

    /// Returns whether the column has numbers.
    fn is_right(&self, column: usize) -> bool {
        if column == 0 {
            return false;
        }
        for row in &self.rows {
            if chart::number(&row[column]).is_some() {
                return true;
            }
        }
        false
    }
}

/// Puts tables into the pages, with the machine of their figures, and draws the charts again.
/// A part of a table does not replace it.
///
/// # Errors
/// If a page or a chart cannot be written, or no page has markers for one of the tables.
pub fn write(tables: &[Table], machine: Option<&str>, is_part: bool) -> io::Result<()> {
    let mut missing: Vec<&str> = tables.iter().map(|table| &*table.name).collect();
    for path in pages()? {
        let old = fs::read_to_string(&path)?;
        let mut page = old.clone();
        for table in tables {
            let Some([before, text, after]) = section(&page, &table.name) else {
                continue;
            };
            missing.retain(|name| *name != table.name);
            let shown = Table::parse("", text);
            let is_whole = table.rows.len() >= shown.rows.len();
            if is_whole || !is_part {
                let text = table.to_string();
                page = [before, &text, after].concat();
            }
        }
        // A page without these tables keeps the machine of its own.
        let has_changed = page != old;
        if has_changed {
            if let Some(machine) = machine {
                page = with_machine(page, machine);
            }
        }
        for (chart, svg) in charts(&page) {
            fs::write(chart, svg)?;
        }
        fs::write(path, page)?;
    }
    if missing.is_empty() {
        return Ok(());
    }
    let missing = missing.join(", ");
    Err(io::Error::other(format!("no page has {missing}")))
}

/// Returns the page with this machine, if it has a section for one.
fn with_machine(page: String, machine: &str) -> String {
    match section(&page, "machine") {
        Some([before, _, after]) => [before, machine, after].concat(),
        None => page,
    }
}

/// Returns the cells of a line of a table.
fn cells(line: &str) -> Option<Vec<String>> {
    let line = line.strip_prefix('|')?;
    let line = line.strip_suffix('|')?;
    let mut cells = Vec::new();
    for cell in line.split('|') {
        cells.push(cell.trim().to_owned());
    }
    Some(cells)
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Returns the paths of the pages of `docs`, and of the other pages with tables.
fn pages() -> io::Result<Vec<PathBuf>> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(root().join("docs"))? {
        let path = entry?.path();
        if path.extension() == Some(OsStr::new("md")) {
            pages.push(path);
        }
    }
    for page in [
        "README.md",
        "crates/vdso-time-counter/README.md",
        "crates/vdso-time-criterion/README.md",
        "tools/vdso-time-kernel-runner/MATRIX.md",
    ] {
        pages.push(root().join(page));
    }
    Ok(pages)
}

/// Splits a page at the begin and the end of a table.
fn section<'a>(page: &'a str, name: &str) -> Option<[&'a str; 3]> {
    let marker = page.find(&format!("{BEGIN}{name} "))?;
    let begin = marker + page[marker..].find('\n')? + 1;
    let end = begin + page[begin..].find(END)?;
    Some([&page[..begin], &page[begin..end], &page[end..]])
}

/// Returns the charts of a page: files, and what belongs in them.
///
/// # Panics
///
/// If a marker asks for a chart that cannot be made.
fn charts(page: &str) -> Vec<(PathBuf, String)> {
    let mut charts = Vec::new();
    for section in page.split(BEGIN).skip(1) {
        let (marker, rest) = section.split_once('\n').unwrap_or((section, ""));
        let Some((name, asked)) = marker.split_once(" chart=") else {
            continue;
        };
        match chart(page, name, asked, rest) {
            Ok(svg) => {
                let file = format!("docs/charts/{name}.svg");
                charts.push((root().join(file), svg));
            }
            Err(why) => panic!("the chart {name}: {why}"),
        }
    }
    charts
}

/// Returns the SVG of a chart, or why it cannot be made. `asked` is what the marker says about the
/// chart, and `rest` is the page after the marker. The text that stands for the picture on the page
/// describes it.
fn chart(page: &str, name: &str, asked: &str, rest: &str) -> Result<String, String> {
    let asked = asked.strip_suffix(" -->");
    let words = asked.and_then(|asked| asked.split_once(' '));
    let (columns, title) = words.ok_or("the marker is not `chart=COLUMNS TITLE -->`")?;
    let Ok(columns) = columns.parse() else {
        return Err(format!("`{columns}` is not a number of columns"));
    };
    let (lines, _) = rest.split_once(END).ok_or("the table has no end")?;
    let table = Table::parse(name, lines);
    let picture = description(page, name).ok_or("the page does not show the picture")?;
    let words: Vec<&str> = picture.split_whitespace().collect();
    let chart = chart::Chart {
        table: &table,
        columns,
        title,
        description: &words.join(" "),
    };
    Ok(chart.svg())
}

/// Returns the text that stands for the picture of a chart on a page.
fn description<'a>(page: &'a str, name: &str) -> Option<&'a str> {
    let (before, _) = page.split_once(&format!("charts/{name}.svg)"))?;
    let (_, picture) = before.rsplit_once("![")?;
    let (description, _) = picture.rsplit_once("](")?;
    Some(description)
}

#[cfg(test)]
mod tests {
    use super::{Table, chart, charts, fs, pages};

    #[test]
    fn rows_of_other_machines_stay_in_their_order() {
        let names = ["i686@native", "aarch64@7", "armv7@7"].map(String::from);
        let table = |rows: &[[&str; 2]]| {
            let mut table = Table::new("", ["machine", "tests"]);
            for [machine, tests] in rows {
                let tests = (*tests).to_owned();
                table.add(machine, [Some(tests)]);
            }
            table
        };
        let old = table(&[["gone@1", "0"], ["i686@native", "1"], ["armv7@7", "2"]]);
        let old = old.to_string();
        let mut new = table(&[["armv7@7", "4"], ["aarch64@7", "3"]]);
        new.merge(Table::parse("", &old), &names);
        assert_eq!(
            new.rows,
            [["i686@native", "1"], ["aarch64@7", "3"], ["armv7@7", "4"]]
        );
    }

    const PAGE: &str = "\
![What calls cost](charts/calls.svg)

<!-- generated calls chart=1 Calls -->
| ns | here |
|----|-----:|
| a  |  1.0 |
<!-- /generated -->
";

    #[test]
    fn a_chart_that_cannot_be_made_is_an_error() {
        let parts = |page: &'static str| page.split_once("chart=").unwrap().1.split_once('\n');
        let (asked, rest) = parts(PAGE).unwrap();
        assert!(chart(PAGE, "calls", asked, rest).is_ok());
        for (name, asked, error) in [
            ("renamed", asked, "the page does not show the picture"),
            ("calls", "x Calls -->", "`x` is not a number of columns"),
            (
                "calls",
                "1 -->",
                "the marker is not `chart=COLUMNS TITLE -->`",
            ),
            (
                "calls",
                "1 Calls",
                "the marker is not `chart=COLUMNS TITLE -->`",
            ),
        ] {
            assert_eq!(chart(PAGE, name, asked, rest), Err(error.to_owned()));
        }
    }

    #[test]
    #[should_panic(expected = "the chart calls: the page does not show the picture")]
    fn a_chart_that_cannot_be_made_is_named() {
        charts(&PAGE.replace("calls.svg", "renamed.svg"));
    }

    /// Compares the charts. With `CHARTS=overwrite` it draws those whose table was changed by hand.
    #[test]
    fn each_chart_shows_the_table_of_its_page() {
        let asked = std::env::var("CHARTS").unwrap_or_default();
        for page in pages().unwrap() {
            let text = fs::read_to_string(&page).unwrap();
            for (file, svg) in charts(&text) {
                if asked == "overwrite" {
                    fs::write(&file, &svg).unwrap();
                }
                let old = fs::read_to_string(&file).unwrap_or_default();
                assert!(
                    old == svg,
                    "{} does not show its table in {}",
                    file.display(),
                    page.display()
                );
            }
        }
    }
}
