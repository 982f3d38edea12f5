//! The program: its command line, what it prints, and its exit status.

#[cfg(not(all(
    any(target_os = "linux", target_os = "android"),
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
compile_error!("vdso-who is for Linux and Android on x86_64 and aarch64");

mod arguments;
mod breakpoints;
mod callers;
mod clock_read;
mod console;
mod flame_graph;
mod guard;
#[cfg(test)]
#[path = "../tests/known.rs"]
mod known;
mod mapping;
mod pages;
mod perf;
mod proc;
mod progress;
mod report;
mod space;
mod target;
mod text;
mod unit;
mod watch;

use std::fs::File;
use std::io::{self, IsTerminal as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::{env, mem};

use arguments::Arguments;
use clap::Parser as _;
use console::{FAILED, USAGE, escaped, print, printable, usage};
use nix::errno::Errno;
use nix::sys::signal::Signal;
use progress::Progress;
use report::Report;
use signal_hook::consts::{SIGINT, SIGPIPE, SIGTERM};
use signal_hook::flag;
use text::{COLUMNS, wrapped};

/// Why nothing was measured. Its text says what to do.
type Error = Box<dyn std::error::Error + Send + Sync>;
type Result<T, E = Error> = std::result::Result<T, E>;

fn main() -> ExitCode {
    let status = match Arguments::try_parse_from(Arguments::words(env::args_os())) {
        Err(error) if error.use_stderr() => {
            let is_top = env::args_os().nth(1).is_some_and(|word| word == "top");
            let typed = if is_top {
                "top"
            } else {
                "--interval <SECONDS>"
            };
            say(&usage(&error).replace("--interval <SECONDS>", typed));
            Ok(USAGE)
        }
        Ok(arguments) if arguments.output.is_some() => run(&arguments),
        answer => console::require_output()
            .map_err(Into::into)
            .and_then(|()| match answer {
                Ok(arguments) => run(&arguments),
                Err(help) => Ok(print(&help.to_string()).map(|()| 0)?),
            }),
    };
    let failed = |error: Error| {
        say(&error.to_string());
        FAILED
    };
    status.unwrap_or_else(failed).into()
}

fn run(arguments: &Arguments) -> Result<u8> {
    let Some(page) = &arguments.generate else {
        return watch(arguments);
    };
    print(pages::text(page))?;
    Ok(0)
}

fn watch(arguments: &Arguments) -> Result<u8> {
    let path = arguments.output.as_deref().unwrap_or(Path::new(""));
    let failed = |error| format!("cannot write {}: {error}", path.display());
    let open = |path| {
        File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
    };
    // If this fails, the command does not run.
    let file = arguments
        .output
        .as_ref()
        .map(open)
        .transpose()
        .map_err(failed)?;
    // A pipe is opened when it has a reader. Until then a signal ends the program.
    let ignored = proc::ignored([Signal::SIGINT, Signal::SIGTERM]);
    let signal = caught()?;
    // Without a reader, tables would be printed for ever.
    let show_part = |report: &Report| {
        if show_part(report).is_err() {
            let _ = signal.compare_exchange(0, SIGPIPE as usize, Relaxed, Relaxed);
        }
    };
    let mut shown = 0;
    let mut is_over = |progress: &Progress, seconds: f64| {
        show(arguments, progress, seconds as u64, &mut shown);
        signal.load(Relaxed) != 0
    };
    let watched = watch::watch(arguments, &ignored, &show_part, &mut is_over);
    clear_line();
    let (report, target) = watched?;
    let written = text(arguments, &report).and_then(|text| match file {
        None => print(&text).map_err(Into::into),
        Some(file) => replace(file, &text, path).map_err(|error| failed(error).into()),
    });
    let Some(mut target) = target else {
        return written.map(|()| 0);
    };
    if target.is_running() {
        say("the measurement is over; waiting for the command to end");
    }
    let status = target.wait(|| signal.load(Relaxed) == SIGTERM as usize)?;
    written.map(|()| status)
}

/// Catches the signals that end a measurement. Returns where the first one is stored. A second one
/// ends this program.
fn caught() -> io::Result<Arc<AtomicUsize>> {
    let (is_second, first) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    for signal in [SIGINT, SIGTERM] {
        // The conditional action comes first, so that a first signal does not see the flag that it
        // sets itself.
        flag::register_conditional_default(signal, is_second.clone())?;
        flag::register(signal, is_second.clone())?;
        flag::register_usize(signal, first.clone(), signal as usize)?;
    }
    Ok(first)
}

/// Returns the report in the format that is asked for.
fn text(arguments: &Arguments, report: &Report) -> Result<String> {
    Ok(if arguments.is_svg() {
        report.svg()?
    } else if arguments.json {
        escaped(&serde_json::to_string_pretty(report)?) + "\n"
    } else if arguments.folded {
        report.folded.iter().flat_map(|line| [line, "\n"]).collect()
    } else if arguments.interval.is_some() && io::stdout().is_terminal() {
        // The last whole interval stays on the screen.
        String::new()
    } else {
        report.table(columns())
    })
}

/// Returns the columns of the terminal.
fn columns() -> usize {
    terminal_size::terminal_size_of(io::stdout()).map_or(COLUMNS, |(width, _)| width.0.into())
}

/// Prints the table of an interval, on a terminal in the place of the last one.
fn show_part(report: &Report) -> io::Result<()> {
    let table = report.table(columns());
    let Some((width, height)) = terminal_size::terminal_size_of(io::stdout()) else {
        return console::write(&format!("\n{table}"));
    };
    // A line that does not fit would scroll the first ones away.
    let fit = |line: &str| {
        line.chars()
            .take(width.0.into())
            .chain(['\n'])
            .collect::<String>()
    };
    let lines = table
        .lines()
        .take(usize::from(height.0).saturating_sub(1))
        .map(fit);
    // The screen is cleared.
    console::write(&format!("\x1b[H\x1b[2J{}", lines.collect::<String>()))
}

/// Shows each second on the terminal how far a measurement is. `shown` is the last second that was
/// shown.
fn show(arguments: &Arguments, progress: &Progress, second: u64, shown: &mut u64) {
    let download = progress
        .download
        .lock()
        .ok()
        .and_then(|download| download.clone());
    let is_asked_for =
        arguments.interval.is_none() && (arguments.command.is_empty() || download.is_some());
    if is_asked_for && io::stderr().is_terminal() && mem::replace(shown, second) != second {
        let [samples, reads] =
            [&progress.samples, &progress.reads].map(|number| number.load(Relaxed));
        let what = download.map_or("Ctrl-C ends it".into(), |file| {
            format!("debuginfod: {file}")
        });
        let _ = write!(
            io::stderr(),
            "\r\x1b[K{second} s: {samples} samples, {reads} in clock reads; {what}"
        );
    }
}

fn clear_line() {
    if io::stderr().is_terminal() {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
}

/// Writes a report in the place of what is in the file. The command may have removed that.
fn replace(mut file: File, text: &str, path: &Path) -> io::Result<()> {
    let is_removed = file.metadata()?.nlink() == 0;
    if is_removed {
        file = File::create(path)?;
    }
    // A pipe has no length.
    let _ = file.set_len(0);
    file.write_all(text.as_bytes())
}

/// Prints on standard error, in lines of 80 columns.
fn say(what: &str) {
    let lines = wrapped(&printable(&format!("vdso-who: {what}")));
    console::say(lines.trim_start_matches("vdso-who: "));
}

/// Returns the error of a process that was not started.
fn not_started(error: Errno) -> Error {
    format!("cannot start a process: fork(2) returns {error}").into()
}

/// Returns the error of a thread of this program that ended early.
fn ended<E>(_: E) -> Error {
    "a thread of vdso-who ended: please report it".into()
}
