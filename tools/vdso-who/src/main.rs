//! The program: a command line over the library.

mod arguments;
mod console;

use std::fs::File;
use std::io::{self, IsTerminal as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::{env, mem};

use arguments::{Arguments, Print};
use clap::{CommandFactory as _, Parser as _};
use console::{FAILED, USAGE, print, usage};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use signal_hook::consts::{SIGINT, SIGTERM};
use vdso_who::{Outcome, Progress, Report};

/// What ends the program. Its text is for a person.
type Error = Box<dyn std::error::Error>;

/// Four times the memory that the library takes for names, for what it does not count.
const MOST_MEMORY: u64 = 8 << 30;

fn main() -> ExitCode {
    let status = match Arguments::try_parse_from(Arguments::words(env::args_os())) {
        Err(error) if error.use_stderr() => {
            say(&usage(&error));
            Ok(USAGE)
        }
        Ok(arguments) if arguments.output.is_some() => run(&arguments),
        answer => console::require_output().map_err(Into::into).and_then(|()| match answer {
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

fn run(arguments: &Arguments) -> Result<u8, Error> {
    let mut text = Vec::new();
    match arguments.print {
        Some(Print::Completions { shell }) => {
            clap_complete::generate(shell, &mut Arguments::command(), "vdso-who", &mut text);
        }
        Some(Print::Man) => clap_mangen::Man::new(Arguments::command()).render(&mut text)?,
        None => return watch(arguments),
    }
    print(&String::from_utf8(text)?)?;
    Ok(0)
}

fn watch(arguments: &Arguments) -> Result<u8, Error> {
    set_limits();
    // If this fails, the command does not run.
    let path = arguments.output.as_deref().unwrap_or(Path::new(""));
    let failed = |error| format!("cannot write {}: {error}", path.display());
    let open = |path| File::options().write(true).create(true).truncate(false).open(path);
    let file = arguments.output.as_ref().map(open).transpose().map_err(failed)?;
    // A pipe is opened when it has a reader. Until then a signal ends the program.
    let signal = console::caught(&[SIGINT, SIGTERM])?;
    let mut shown = 0;
    let is_over = |progress: &Progress| {
        show(arguments, progress, &mut shown);
        signal.load(Ordering::Relaxed) != 0
    };
    let watched = vdso_who::watch(&arguments.options(), is_over);
    clear_line();
    let Outcome { report, target, .. } = watched.map_err(|error| match error {
        vdso_who::Error::Command { ref program, .. } if program.parse::<u32>().is_ok() => {
            format!("{error}: a process is watched by `vdso-who --pid {program}`").into()
        }
        error => Error::from(error),
    })?;
    let written = text(arguments, &report).and_then(|text| match file {
        None => print(&text).map_err(Into::into),
        Some(file) => replace(file, &text, path).map_err(|error| failed(error).into()),
    });
    let Some(mut target) = target else { return written.map(|()| 0) };
    if target.is_running() {
        say("the measurement is over; waiting for the command to end");
    }
    let status = target.wait(signal.load(Ordering::Relaxed) == SIGTERM as usize)?;
    written.map(|()| status)
}

/// Returns the report in the format that is asked for.
fn text(arguments: &Arguments, report: &Report) -> Result<String, Error> {
    Ok(if arguments.json {
        serde_json::to_string_pretty(report)? + "\n"
    } else if arguments.is_svg() {
        report.svg()?
    } else if arguments.folded {
        report.folded().iter().flat_map(|line| [line, "\n"]).collect()
    } else if arguments.interval.is_some() && io::stdout().is_terminal() {
        // The last whole interval stays on the screen.
        String::new()
    } else {
        report.table(columns())
    })
}

/// Returns the columns of the terminal, or 80 if standard output is none.
fn columns() -> usize {
    terminal_size::terminal_size_of(io::stdout()).map_or(80, |(width, _)| width.0.into())
}

/// Shows how far a measurement is: each second a line on the terminal, or the table of an interval.
/// `shown` is the last second that was shown.
fn show(arguments: &Arguments, progress: &Progress, shown: &mut u64) {
    if let Some(report) = &progress.report {
        let (mut table, mut start) = (report.table(columns()), "\n");
        if let Some((_, height)) = terminal_size::terminal_size_of(io::stdout()) {
            let lines: Vec<_> = table.lines().take(usize::from(height.0).saturating_sub(1)).collect();
            // The screen is cleared.
            (table, start) = (lines.join("\n") + "\n", "\x1b[H\x1b[2J");
        }
        let _ = print(&(start.to_owned() + &table));
    }
    let second = progress.seconds as u64;
    let is_asked_for =
        arguments.interval.is_none() && (!arguments.has_command() || progress.download.is_some());
    if is_asked_for && io::stderr().is_terminal() && mem::replace(shown, second) != second {
        let Progress { samples, reads, download, .. } = progress;
        let what = download.as_ref().map_or("Ctrl-C ends it".into(), |file| format!("debuginfod: {file}"));
        let _ = write!(io::stderr(), "\r\x1b[K{second} s: {samples} samples, {reads} in clock reads; {what}");
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

/// Limits the memory, and raises the limit of open files: each event is one. These limits are the
/// whole process's, so the library leaves them alone.
fn set_limits() {
    if let Ok((memory, most)) = getrlimit(Resource::RLIMIT_AS) {
        let _ = setrlimit(Resource::RLIMIT_AS, memory.min(MOST_MEMORY), most);
    }
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

/// Prints on standard error, in lines of 80 columns.
fn say(what: &str) {
    let lines = vdso_who::wrapped(&format!("vdso-who: {what}"));
    console::say(lines.trim_start_matches("vdso-who: "));
}
