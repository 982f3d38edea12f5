//! The program: a command line over the library.

mod arguments;
mod console;

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use arguments::{Arguments, Print};
use clap::{CommandFactory as _, Parser as _};
use console::{FAILED, USAGE, print, usage};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use signal_hook::consts::{SIGINT, SIGTERM};
use vdso_who::Outcome;

/// What ends the program. Its text is for a person.
type Error = Box<dyn std::error::Error>;

/// Four times the memory that the library takes for names, for what it does not count.
const MOST_MEMORY: u64 = 8 << 30;

fn main() -> ExitCode {
    let status = match Arguments::try_parse() {
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
    let signal = console::caught(&[SIGINT, SIGTERM])?;
    set_limits();
    // If this fails, the command does not run.
    let path = arguments.output.as_deref().unwrap_or(Path::new(""));
    let failed = |error| format!("cannot write {}: {error}", path.display());
    let open = |path| File::options().write(true).create(true).truncate(false).open(path);
    let file = arguments.output.as_ref().map(open).transpose().map_err(failed)?;
    let is_over = || signal.load(Ordering::Relaxed) != 0;
    let Outcome { report, target, .. } = vdso_who::watch(&arguments.options(), is_over)?;
    let text = if arguments.json {
        serde_json::to_string_pretty(&report)? + "\n"
    } else if arguments.folded {
        report.folded().iter().flat_map(|line| [line, "\n"]).collect()
    } else {
        report.to_string()
    };
    let written = match file {
        None => print(&text).map_err(Into::into),
        Some(file) => replace(file, &text, path).map_err(|error| failed(error).into()),
    };
    let Some(mut target) = target else { return written.map(|()| 0) };
    if target.is_running() {
        say("the measurement is over; waiting for the command to end");
    }
    let status = target.wait(signal.load(Ordering::Relaxed) == SIGTERM as usize)?;
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
