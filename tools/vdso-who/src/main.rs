//! The program: a command line over the library.

mod arguments;
mod stdout;

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicI32, Ordering};

use arguments::{Arguments, Print};
use clap::{CommandFactory as _, Parser as _};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use vdso_who::{Error, Outcome};

const FAILED: u8 = 2;
/// EX_USAGE of sysexits(3).
const USAGE: u8 = 64;

/// The signal that ends the measurement.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

fn main() -> ExitCode {
    let status = match Arguments::try_parse() {
        Err(error) if error.use_stderr() => {
            say(&usage(&error.to_string()));
            Ok(USAGE)
        }
        Ok(arguments) if arguments.output.is_some() => run(&arguments),
        _ if !stdout::was_open() => {
            Err("cannot write the report: standard output is not open for writing".into())
        }
        Ok(arguments) => run(&arguments),
        Err(help) => print(&help.to_string()).map(|()| 0),
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
    print(&String::from_utf8(text)?).map(|()| 0)
}

fn watch(arguments: &Arguments) -> Result<u8, Error> {
    catch_signals()?;
    // If this fails, the command does not run.
    let path = arguments.output.as_deref().unwrap_or(Path::new(""));
    let failed = |error| format!("cannot write {}: {error}", path.display());
    let open = |path| File::options().write(true).create(true).truncate(false).open(path);
    let file = arguments.output.as_ref().map(open).transpose().map_err(failed)?;
    let is_over = || SIGNAL.load(Ordering::Relaxed) != 0;
    let Outcome { report, target, .. } = vdso_who::watch(&arguments.options(), is_over)?;
    let text = if arguments.json {
        serde_json::to_string_pretty(&report)? + "\n"
    } else if arguments.folded {
        report.folded().iter().flat_map(|line| [line, "\n"]).collect()
    } else {
        report.to_string()
    };
    let written = match file {
        None => print(&text),
        Some(file) => replace(file, &text, path).map_err(|error| failed(error).into()),
    };
    let Some(mut target) = target else { return written.map(|()| 0) };
    if target.is_running() {
        say("the measurement is over; waiting for the command to end");
    }
    let status = target.wait(SIGNAL.load(Ordering::Relaxed) == libc::SIGTERM)?;
    written.map(|()| status)
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

/// The first signal ends the measurement, the second this program.
#[allow(unsafe_code, reason = "a signal handler is installed")]
fn catch_signals() -> Result<(), Error> {
    extern "C" fn stop(signal: libc::c_int) {
        SIGNAL.store(signal, Ordering::Relaxed);
    }
    let flags = SaFlags::SA_RESETHAND | SaFlags::SA_RESTART;
    let action = SigAction::new(SigHandler::Handler(stop), flags, SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        // SAFETY: the handler stores a number in an atomic, which a handler may.
        unsafe { sigaction(signal, &action) }?;
    }
    Ok(())
}

/// Prints on standard output. A reader of a pipe that is gone has read enough.
fn print(text: &str) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("cannot write the report: {error}").into())
        }
        _ => Ok(()),
    }
}

/// The first paragraph of clap's message.
fn usage(message: &str) -> String {
    let paragraph = message.split("\n\n").next().unwrap_or_default();
    let words: Vec<_> = paragraph.trim_start_matches("error: ").split_whitespace().collect();
    format!("{} (see `vdso-who --help`)", words.join(" "))
}

/// On standard error, if that can be written to.
fn say(what: &str) {
    let _ = writeln!(io::stderr(), "{}", vdso_who::wrapped(&format!("vdso-who: {what}")));
}
