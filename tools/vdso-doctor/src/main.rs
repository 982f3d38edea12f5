//! The program `vdso-doctor`: a command line for the library.

mod arguments;
mod console;
mod metrics;
mod pages;

use std::error::Error;
use std::process::ExitCode;

use clap::ArgMatches;
use console::{FAILED, USAGE, escaped, print, require_output, say, usage};
use vdso_doctor::{Call, Cause, Location, ProcessDiagnosis, ProcessError, check, diagnose_calls};

const ENTERS_KERNEL: u8 = 1;

fn main() -> ExitCode {
    let status = match arguments::command().try_get_matches() {
        Err(error) if error.use_stderr() => {
            say(&usage(&error));
            return USAGE.into();
        }
        Err(help) => show(&help.to_string()),
        Ok(arguments) if arguments.get_flag("quiet") => return check_quietly(&arguments).into(),
        Ok(arguments) => run(&arguments),
    };
    match status {
        Ok(status) => status.into(),
        Err(error) => {
            say(&error.to_string());
            FAILED.into()
        }
    }
}

/// Prints a text, and returns the status of success.
fn show(text: &str) -> Result<u8, Box<dyn Error>> {
    require_output()?;
    print(text)?;
    Ok(0)
}

fn run(arguments: &ArgMatches) -> Result<u8, Box<dyn Error>> {
    // If standard output is not open for writing, the program ends here, before it makes the calls,
    // which take some time.
    require_output()?;
    if let Some(page) = arguments.get_one::<String>("generate") {
        return show(pages::text(page));
    }
    let is_json = arguments.get_flag("json");
    if let Some(pid) = arguments.get_one::<u32>("pid") {
        let process = ProcessDiagnosis::of(*pid).map_err(|error| failure(*pid, error))?;
        if is_json {
            return show(&json(&process)?);
        }
        return show(&highlighted(&process.to_string(), process.location));
    }
    let required = required(arguments);
    let about = required.as_deref().unwrap_or(&Call::USUAL);
    let diagnosis = diagnose_calls(about)?;
    let location = diagnosis.location(about);
    let report = if arguments.get_flag("metrics") {
        metrics::text(&diagnosis, status(location))
    } else if is_json {
        json(&diagnosis)?
    } else if arguments.get_flag("verbose") {
        highlighted(&format!("{diagnosis:#}"), location)
    } else {
        highlighted(&diagnosis.to_string(), location)
    };
    show(&report)?;
    if required.is_some() {
        return Ok(status(location));
    }
    Ok(0)
}

/// Returns why there is no report about a process. If the doctor has no vDSO either, its own check
/// tells the reason.
fn failure(pid: u32, error: ProcessError) -> String {
    // The doctor checks itself only in this case, because that can take seconds.
    if error == ProcessError::NoVdso {
        if let Err(finding) = check(&Call::USUAL) {
            if finding.cause == Cause::NoVdso {
                return format!(
                    "cannot read process {pid}: it has no vDSO, and the doctor has none: {finding}"
                );
            }
        }
    }
    format!("cannot read process {pid}: {error}")
}

/// Returns the calls that must stay in user space.
fn required(arguments: &ArgMatches) -> Option<Vec<Call>> {
    Some(arguments.get_many("require-user-space")?.copied().collect())
}

fn json(report: &impl serde_core::Serialize) -> serde_json::Result<String> {
    Ok(escaped(&serde_json::to_string_pretty(report)?) + "\n")
}

fn check_quietly(arguments: &ArgMatches) -> u8 {
    match check(required(arguments).as_deref().unwrap_or(&Call::USUAL)) {
        Ok(()) => 0,
        Err(finding) => {
            say(&finding.message);
            status(finding.location)
        }
    }
}

fn status(location: Location) -> u8 {
    match location {
        Location::UserSpace => 0,
        Location::Kernel => ENTERS_KERNEL,
        _ => FAILED,
    }
}

/// Returns the report with its first paragraph, which is the verdict, in green, red or yellow. The
/// location determines the colour.
fn highlighted(report: &str, location: Location) -> String {
    let color = match location {
        Location::UserSpace => 32,
        Location::Kernel => 31,
        _ => 33,
    };
    let (verdict, rest) = report.split_once("\n\n").unwrap_or((report, ""));
    format!("\x1b[1;{color}m{verdict}\x1b[0m\n\n{rest}")
}
