//! Output: where a report is written, and in which format.

mod comparison;
mod folded;
pub(crate) mod json;
mod svg;
pub(crate) mod table;

use std::fs::{self, File};
use std::io::{self, IsTerminal as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::arguments::Arguments;
use crate::console;
use crate::error::{Error, Result};
use crate::report::Report;

/// The format of a report.
#[derive(Clone, Copy, Debug)]
enum Format {
    Table,
    Json,
    /// A line of JSON for each interval.
    JsonLine,
    /// A line for each call chain.
    Folded,
    /// A flame graph.
    Svg,
    /// An empty report, for --interval on a terminal: the table of the last interval has been
    /// printed already, and stays on the screen.
    Nothing,
}

impl Format {
    fn of(arguments: &Arguments) -> Self {
        if arguments.is_svg() {
            Self::Svg
        } else if arguments.json && arguments.interval.is_some() {
            Self::JsonLine
        } else if arguments.json {
            Self::Json
        } else if arguments.folded {
            Self::Folded
        } else if arguments.interval.is_some() && io::stdout().is_terminal() {
            Self::Nothing
        } else {
            Self::Table
        }
    }

    fn text(self, report: &Report) -> Result<String> {
        match self {
            Self::Table => Ok(table::text(report, console::columns())),
            Self::Json => json::text(report),
            Self::JsonLine => Ok(json::line(report)?),
            Self::Folded => Ok(folded::text(report)),
            Self::Svg => svg::text(report),
            Self::Nothing => Ok(String::new()),
        }
    }
}

/// Standard output or an open file.
pub(crate) struct Output {
    format: Format,
    file: Option<OpenFile>,
}

struct OpenFile {
    file: File,
    path: PathBuf,
    /// Whether this program created the file.
    is_new: bool,
}

impl Output {
    /// Opens the output file, if there is one, and leaves its content unchanged. Waits for the
    /// reader if the file is a named pipe. Signals are not caught yet, so a signal ends the program
    /// while it waits.
    ///
    /// # Errors
    /// If the report could not be written later.
    pub(crate) fn open(arguments: &Arguments) -> Result<Self> {
        let format = Format::of(arguments);
        if matches!(format, Format::Svg) && !svg::IS_AVAILABLE {
            return Err(svg::UNAVAILABLE.into());
        }
        let Some(path) = arguments.output.clone() else {
            console::require_output()?;
            return Ok(Self { format, file: None });
        };
        let is_new = !path.exists();
        let mut options = File::options();
        let opened = options.write(true).create(true).truncate(false).open(&path);
        let file = opened.map_err(|error| not_written(&path, &error))?;
        Ok(Self {
            format,
            file: Some(OpenFile { file, path, is_new }),
        })
    }

    /// Writes a report. Without a clock read there is no flame graph, so the table is printed
    /// instead.
    pub(crate) fn write(self, report: &Report) -> Result<()> {
        let Some(OpenFile { file, path, is_new }) = self.file else {
            return console::print(&self.format.text(report)?);
        };
        if matches!(self.format, Format::Svg) && report.folded.is_empty() {
            if is_new {
                let _ = fs::remove_file(path);
            }
            return console::print(&table::text(report, console::columns()));
        }
        let text = self.format.text(report)?;
        replace(file, &text, &path).map_err(|error| not_written(&path, &error))
    }
}

fn not_written(path: &Path, error: &io::Error) -> Error {
    format!("cannot write {}: {error}", path.display()).into()
}

/// Replaces the content of the file with a report. If the command has removed the file, creates it
/// again.
fn replace(mut file: File, text: &str, path: &Path) -> io::Result<()> {
    let is_removed = file.metadata()?.nlink() == 0;
    if is_removed {
        file = File::create(path)?;
    }
    // A pipe has no length.
    let _ = file.set_len(0);
    file.write_all(text.as_bytes())
}

#[cfg(all(test, not(feature = "svg")))]
mod tests {
    use super::*;
    use crate::arguments::arguments;

    #[test]
    fn without_flame_graphs_the_error_comes_before_the_measurement() {
        let path = crate::common::target_tmpdir().join("who-without.svg");
        let _ = fs::remove_file(&path);
        let opened = Output::open(&arguments(&format!("--all -o {}", path.display())));
        let error = opened.err().unwrap().to_string();
        assert!(error.contains("the feature `svg`"), "{error}");
        assert!(!path.exists());
    }
}
