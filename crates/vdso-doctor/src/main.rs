//! The program: a command line over the library.

mod accuracy;
mod arguments;
mod stdout;

use std::error::Error;
use std::io::{self, IsTerminal as _, Write as _};
use std::{env, process::ExitCode};

use arguments::{Arguments, Command, HELP};
use vdso_doctor::{Place, Read, diagnose_with};

const ENTERS_KERNEL: u8 = 1;
const FAILED: u8 = 2;
/// EX_USAGE of sysexits(3).
const USAGE: u8 = 64;

fn main() -> ExitCode {
    let arguments = match arguments::parse(lexopt::Parser::from_env()) {
        Ok(arguments) => arguments,
        Err(error) => {
            complain(&format!("{error}\n\n{HELP}"));
            return USAGE.into();
        }
    };
    let status = if stdout::was_open() {
        run(&arguments)
    } else {
        Err("cannot write the report: standard output is closed".into())
    };
    match status {
        Ok(status) => status.into(),
        Err(error) => {
            // If the reader of a pipe is gone, there is nothing to report.
            if error.downcast_ref().map(io::Error::kind) != Some(io::ErrorKind::BrokenPipe) {
                complain(&error.to_string());
            }
            FAILED.into()
        }
    }
}

fn run(arguments: &Arguments) -> Result<u8, Box<dyn Error>> {
    match &arguments.command {
        Command::Help => print(HELP)?,
        Command::Accuracy { seconds, plot } => print(&accuracy::report(*seconds, plot.as_deref())?)?,
        Command::Diagnose => return diagnose(arguments),
    }
    Ok(0)
}

fn diagnose(arguments: &Arguments) -> Result<u8, Box<dyn Error>> {
    let reads = arguments.required.as_deref().unwrap_or(&Read::USUAL);
    let diagnosis = diagnose_with(arguments.method, reads)?;
    let has_colours = io::stdout().is_terminal() && env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    print(&match (arguments.json, has_colours) {
        (true, _) => serde_json::to_string_pretty(&diagnosis)? + "\n",
        (false, true) => diagnosis.in_colours(),
        (false, false) => diagnosis.to_string(),
    })?;
    Ok(match arguments.required.as_deref().map(|required| diagnosis.place(required)) {
        None | Some(Place::UserSpace) => 0,
        Some(Place::Kernel) => ENTERS_KERNEL,
        Some(_) => FAILED,
    })
}

fn print(text: &str) -> Result<(), Box<dyn Error>> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => error.into(),
        _ => format!("cannot write the report: {error}").into(),
    })
}

/// On standard error, if that can be written to.
fn complain(what: &str) {
    let _ = writeln!(io::stderr(), "vdso-doctor: {what}");
}
