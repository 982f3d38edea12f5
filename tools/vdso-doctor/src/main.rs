//! The program: a command line over the library.

mod accuracy;
mod arguments;
mod metrics;
#[cfg(feature = "pages")]
mod pages;
mod stdout;

use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::ArgMatches;
use vdso_doctor::{Place, ProcessDiagnosis, Read, check, diagnose_reads};

const ENTERS_KERNEL: u8 = 1;
const FAILED: u8 = 2;
/// EX_USAGE of sysexits(3).
const USAGE: u8 = 64;

fn main() -> ExitCode {
    let status = match arguments::command().try_get_matches() {
        Err(error) if error.use_stderr() => {
            say(&usage(&error.to_string()));
            Ok(USAGE)
        }
        Ok(arguments) if arguments.get_flag("quiet") => Ok(check_quietly(&arguments)),
        _ if !stdout::was_open() => {
            Err("cannot write the report: standard output is not open for writing".into())
        }
        Ok(arguments) => run(&arguments),
        Err(help) => print(&help.to_string()).map(|()| 0),
    };
    let failed = |error: Box<dyn Error>| {
        say(&error.to_string());
        FAILED
    };
    status.unwrap_or_else(failed).into()
}

fn run(arguments: &ArgMatches) -> Result<u8, Box<dyn Error>> {
    let text = match arguments.subcommand() {
        Some(("accuracy", arguments)) => {
            accuracy::report(arguments.get_one("seconds").copied().unwrap_or(30))?
        }
        #[cfg(feature = "pages")]
        Some((name, arguments)) => pages::text(arguments::command(), name, arguments)?,
        _ => return report(arguments),
    };
    print(&text).map(|()| 0)
}

fn report(arguments: &ArgMatches) -> Result<u8, Box<dyn Error>> {
    let is_json = arguments.get_flag("json");
    if let Some(pid) = arguments.get_one("pid").copied() {
        let seen = ProcessDiagnosis::of(pid).map_err(|error| format!("process {pid}: {error}"))?;
        print(&if is_json { json(&seen)? } else { highlighted(&seen.to_string(), seen.place) })?;
        return Ok(0);
    }
    let required = required(arguments);
    let about = required.as_deref().unwrap_or(&Read::USUAL);
    let diagnosis = diagnose_reads(about)?;
    let place = diagnosis.place(about);
    if arguments.get_flag("metrics") {
        print(&metrics::text(&diagnosis, status(place)))?;
    } else if is_json {
        print(&json(&diagnosis)?)?;
    } else {
        let report =
            if arguments.get_flag("verbose") { format!("{diagnosis:#}") } else { diagnosis.to_string() };
        print(&highlighted(&report, place))?;
    }
    Ok(if required.is_some() { status(place) } else { 0 })
}

/// The reads that must stay in user space.
fn required(arguments: &ArgMatches) -> Option<Vec<Read>> {
    Some(arguments.get_many("require-user-space")?.copied().collect())
}

fn json(report: &impl serde_core::Serialize) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(report)? + "\n")
}

fn check_quietly(arguments: &ArgMatches) -> u8 {
    match check(required(arguments).as_deref().unwrap_or(&Read::USUAL)) {
        Ok(()) => 0,
        Err(finding) => {
            say(&finding.message);
            status(finding.place)
        }
    }
}

fn status(place: Place) -> u8 {
    match place {
        Place::UserSpace => 0,
        Place::Kernel => ENTERS_KERNEL,
        _ => FAILED,
    }
}

/// The verdict, which is the first paragraph, in green, red or yellow.
fn highlighted(report: &str, place: Place) -> String {
    let color = match place {
        Place::UserSpace => 32,
        Place::Kernel => 31,
        _ => 33,
    };
    let (verdict, rest) = report.split_once("\n\n").unwrap_or((report, ""));
    format!("\x1b[1;{color}m{verdict}\x1b[0m\n\n{rest}")
}

/// Prints on standard output, with colours only if that is a terminal. A reader of a pipe that is
/// gone has read enough.
fn print(text: &str) -> Result<(), Box<dyn Error>> {
    let mut out = anstream::AutoStream::auto(io::stdout().lock());
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("cannot write the report: {error}").into())
        }
        _ => Ok(()),
    }
}

/// What clap says before the usage, such as a suggestion, in one line.
fn usage(message: &str) -> String {
    let message = message.trim_start_matches("error: ");
    let is_about_help = |text: &&str| text.starts_with("Usage:") || text.starts_with("For more information");
    let paragraphs = message.split("\n\n").take_while(|text| !is_about_help(text));
    let in_one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let paragraphs: Vec<_> = paragraphs.map(in_one_line).collect();
    format!("{} (see `vdso-doctor --help`)", paragraphs.join("; "))
}

/// On standard error, if that can be written to.
fn say(what: &str) {
    let _ = writeln!(io::stderr(), "vdso-doctor: {what}");
}
