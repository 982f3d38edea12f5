//! The program: a command line over the library.

mod accuracy;
mod arguments;
mod stdout;

use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;

use arguments::{Arguments, Command};
use clap::Parser as _;
use vdso_doctor::{Place, Read, diagnose_reads};

const ENTERS_KERNEL: u8 = 1;
const FAILED: u8 = 2;
/// EX_USAGE of sysexits(3).
const USAGE: u8 = 64;

fn main() -> ExitCode {
    let status = match Arguments::try_parse() {
        _ if !stdout::was_open() => Err("cannot write the report: standard output is closed".into()),
        Ok(arguments) => run(&arguments),
        Err(error) if error.use_stderr() => {
            let _ = error.print();
            Ok(USAGE)
        }
        Err(help) => print(&help.to_string()).map(|()| 0),
    };
    let failed = |error: Box<dyn Error>| {
        // If the reader of a pipe is gone, there is nothing to report.
        if error.downcast_ref().map(io::Error::kind) != Some(io::ErrorKind::BrokenPipe) {
            say(&error.to_string());
        }
        FAILED
    };
    status.unwrap_or_else(failed).into()
}

fn run(arguments: &Arguments) -> Result<u8, Box<dyn Error>> {
    if let Some(Command::Accuracy { seconds }) = arguments.command {
        print(&accuracy::report(seconds)?)?;
        return Ok(0);
    }
    let required = arguments.require_user_space.as_deref();
    let diagnosis = diagnose_reads(required.unwrap_or(&Read::USUAL))?;
    print(&if arguments.json {
        serde_json::to_string_pretty(&diagnosis)? + "\n"
    } else {
        diagnosis.to_string()
    })?;
    Ok(match required.map(|required| diagnosis.place(required)) {
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
fn say(what: &str) {
    let _ = writeln!(io::stderr(), "vdso-doctor: {what}");
}
