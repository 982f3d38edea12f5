//! Shows which functions of an unmodified program read the clock, and what that costs.

#![allow(
    clippy::cast_precision_loss,
    reason = "shares need no more digits than f64 has"
)]

#[cfg(not(all(
    any(target_os = "linux", target_os = "android"),
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
compile_error!("vdso-who is for Linux and Android on x86_64 and aarch64");

mod address_space;
mod arguments;
mod breakpoints;
mod clock_read;
#[cfg(test)]
#[path = "../tests/common/mod.rs"]
mod common;
mod console;
mod error;
mod guard;
mod interrupt;
mod keys;
#[cfg(test)]
#[path = "../tests/known.rs"]
mod known;
mod mapping;
mod measurement;
mod output;
mod pages;
mod perf;
mod proc;
mod progress;
mod report;
mod screen;
mod tally;
mod target;
mod text;
mod unit;
mod unwind;

use std::process::ExitCode;

use arguments::{Arguments, Request};
use console::FAILED;
use error::Result;
use interrupt::Interrupt;
use measurement::Measurement;
use output::Output;
use report::Shares;
use screen::Screen;

fn main() -> ExitCode {
    let status = match run() {
        Ok(status) => status,
        Err(error) => {
            console::say(&error.to_string());
            FAILED
        }
    };
    status.into()
}

/// Does what the command line asks for, and returns the exit status.
fn run() -> Result<u8> {
    match Arguments::request() {
        Request::Measure(arguments) => measure(&arguments),
        Request::Print(text) => console::print_all(&text),
        Request::Wrong(message) => Ok(console::wrong_usage(&message)),
    }
}

fn measure(arguments: &Arguments) -> Result<u8> {
    // The output is opened first, so that the command does not run if the report cannot be written.
    let output = Output::open(arguments)?;
    let earlier = match &arguments.compare {
        Some(path) => Some(Shares::read(path, arguments.grouping())?),
        None => None,
    };
    let interrupt = Interrupt::catch()?;
    let screen = Screen::new(arguments, &interrupt);
    let mut measurement = Measurement::open(arguments, &interrupt)?;
    let measured = measurement.run(&screen);
    screen.clear();
    let mut report = measured?;
    if let Some(earlier) = &earlier {
        report.compare(earlier)?;
    }
    let written = output.write(&report);
    let status = measurement.wait_for_command()?;
    written?;
    Ok(status)
}
