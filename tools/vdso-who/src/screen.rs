//! The output during a measurement: its progress on standard error, and with --interval the table
//! of each interval.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use signal_hook::consts::{SIGINT, SIGPIPE};

use crate::arguments::Arguments;
use crate::console;
use crate::interrupt::Interrupt;
use crate::keys::Keys;
use crate::output::{json, table};
use crate::progress::Progress;
use crate::report::Report;

/// An observer of a measurement while it runs.
pub(crate) trait Observer: Sync {
    /// Called many times a second. Returns whether the measurement should end.
    fn is_over(&self, progress: &Progress, seconds: f64) -> bool;

    /// Receives the report of an interval.
    fn interval(&self, report: &Report);
}

/// The terminal, which shows the progress and the tables.
pub(crate) struct Screen<'a> {
    arguments: &'a Arguments,
    interrupt: &'a Interrupt,
    has_terminal: bool,
    /// The keys of the terminal, which are read only with --interval. They are not read if there is
    /// a command, because the command may read from the terminal itself. None once the measurement
    /// should end.
    keys: Mutex<Option<Keys>>,
    /// The second of the measurement that was shown last.
    shown: AtomicU64,
}

impl<'a> Screen<'a> {
    pub(crate) fn new(arguments: &'a Arguments, interrupt: &'a Interrupt) -> Self {
        let mut keys = None;
        if arguments.interval.is_some() && !arguments.has_command() {
            keys = Keys::open();
        }
        Self {
            arguments,
            interrupt,
            keys: Mutex::new(keys),
            has_terminal: io::stderr().is_terminal(),
            shown: AtomicU64::new(0),
        }
    }

    /// Clears the line that shows the progress.
    pub(crate) fn clear(&self) {
        if self.has_terminal {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }

    /// Reads the keys that were pressed. Once the measurement should end, restores the settings of
    /// the terminal, because a second signal ends this program immediately.
    fn read_keys(&self) {
        let Ok(mut keys) = self.keys.lock() else {
            return;
        };
        if keys.as_ref().is_some_and(Keys::has_quit) {
            self.interrupt.set(SIGINT);
        }
        if self.interrupt.is_set() {
            keys.take();
        }
    }

    /// Shows the progress of the measurement once a second. With a command, only a download is
    /// shown, because the command may write to the terminal itself.
    fn show_progress(&self, progress: &Progress, second: u64) {
        let download = progress.download();
        let is_silent = self.arguments.has_command() && download.is_none();
        if !self.has_terminal || self.arguments.interval.is_some() || is_silent {
            return;
        }
        if self.shown.swap(second, Relaxed) == second {
            return;
        }
        let samples = progress.samples.load(Relaxed);
        let reads = progress.reads.load(Relaxed);
        let what = match download {
            Some(file) => format!("debuginfod: {file}"),
            None => "Ctrl-C ends it".into(),
        };
        let _ = write!(
            io::stderr(),
            "\r\x1b[K{second} s: {samples} samples, {reads} in clock reads; {what}"
        );
    }
}

impl Observer for Screen<'_> {
    fn is_over(&self, progress: &Progress, seconds: f64) -> bool {
        self.show_progress(progress, seconds as u64);
        self.read_keys();
        self.interrupt.is_set()
    }

    fn interval(&self, report: &Report) {
        let shown = if self.arguments.json {
            print_line(report)
        } else {
            print_table(report)
        };
        // Usually the write fails because standard output has no reader any more. The measurement
        // ends here, because with --interval it might otherwise never end.
        if shown.is_err() {
            self.interrupt.set(SIGPIPE);
        }
    }
}

fn print_line(report: &Report) -> io::Result<()> {
    console::write(&json::line(report)?)
}

fn print_table(report: &Report) -> io::Result<()> {
    match terminal_size::terminal_size_of(io::stdout()) {
        Some((width, height)) => show_table(report, width.0.into(), height.0.into()),
        None => console::write(&format!("\n{}", table::text(report, console::columns()))),
    }
}

/// Prints a table on the terminal in place of the last one. Cuts off what does not fit, because a
/// line too many would scroll the first lines away.
fn show_table(report: &Report, width: usize, height: usize) -> io::Result<()> {
    let table = table::text(report, width);
    let mut text = String::from("\x1b[H\x1b[2J");
    for line in table.lines().take(height.saturating_sub(1)) {
        text.extend(line.chars().take(width));
        text.push('\n');
    }
    console::write(&text)
}
