//! The program: a command line over the library.

mod arguments;
mod console;
mod metrics;
mod pages;

use std::error::Error;
use std::process::ExitCode;

use clap::ArgMatches;
use console::{FAILED, USAGE, escaped, print, say, usage};
use vdso_doctor::{Call, Cause, Location, ProcessDiagnosis, ProcessError, check, diagnose_calls};

const ENTERS_KERNEL: u8 = 1;

fn main() -> ExitCode {
    let status = match arguments::command().try_get_matches() {
        Err(error) if error.use_stderr() => {
            say(&usage(&error));
            Ok(USAGE)
        }
        Ok(arguments) if arguments.get_flag("quiet") => Ok(check_quietly(&arguments)),
        answer => console::require_output()
            .map_err(Into::into)
            .and_then(|()| match answer {
                Ok(arguments) => run(&arguments),
                Err(help) => Ok(print(&help.to_string()).map(|()| 0)?),
            }),
    };
    status
        .unwrap_or_else(|error| {
            say(&error.to_string());
            FAILED
        })
        .into()
}

fn run(arguments: &ArgMatches) -> Result<u8, Box<dyn Error>> {
    if let Some(page) = arguments.get_one::<String>("generate") {
        print(pages::text(page))?;
        return Ok(0);
    }
    let is_json = arguments.get_flag("json");
    if let Some(pid) = arguments.get_one("pid").copied() {
        let seen = ProcessDiagnosis::of(pid).map_err(|error| failure(pid, error))?;
        print(&if is_json {
            json(&seen)?
        } else {
            highlighted(&seen.to_string(), seen.location)
        })?;
        return Ok(0);
    }
    let required = required(arguments);
    let about = required.as_deref().unwrap_or(&Call::USUAL);
    let diagnosis = diagnose_calls(about)?;
    let location = diagnosis.location(about);
    if arguments.get_flag("metrics") {
        print(&metrics::text(&diagnosis, status(location)))?;
    } else if is_json {
        print(&json(&diagnosis)?)?;
    } else {
        let report = if arguments.get_flag("verbose") {
            format!("{diagnosis:#}")
        } else {
            diagnosis.to_string()
        };
        print(&highlighted(&report, location))?;
    }
    Ok(if required.is_some() {
        status(location)
    } else {
        0
    })
}

/// Returns why a process has no report. If the doctor has no vDSO either, it knows the reason.
fn failure(pid: u32, error: ProcessError) -> String {
    match check(&Call::USUAL) {
        Err(finding) if error == ProcessError::NoVdso && finding.cause == Cause::NoVdso => {
            format!("process {pid}: it has no vDSO, and the doctor has none: {finding}")
        }
        _ => format!("process {pid}: {error}"),
    }
}

/// Returns the reads that must stay in user space.
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

/// Returns the report with its verdict, the first paragraph, in green, red or yellow.
fn highlighted(report: &str, location: Location) -> String {
    let color = match location {
        Location::UserSpace => 32,
        Location::Kernel => 31,
        _ => 33,
    };
    let (verdict, rest) = report.split_once("\n\n").unwrap_or((report, ""));
    format!("\x1b[1;{color}m{verdict}\x1b[0m\n\n{rest}")
}
