//! How true the counter clock is: its deviation from the kernel's clocks over a while, its rate, and what it costs.
//!
//! `cargo run --release --features counter --example accuracy [-- --seconds N] [--plot FILE]`

#![allow(clippy::cast_precision_loss, reason = "what is printed has three digits")]

mod cost;
pub(crate) mod deviation;
mod measured;
pub(crate) mod plot;
pub(crate) mod published;
mod rate;

use std::error::Error;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use std::{env, fs};

use deviation::Deviation;
use vdso_time::counter::{self, Status};

const HELP: &str = "\
Compares the counter clock with the kernel's clocks, and measures what it costs.

Usage: accuracy [--seconds N] [--plot FILE]

  --seconds N   How long to compare. The default is 30
  --plot FILE   Where to write the plot of the deviation over time. The default is accuracy.svg in the target
                folder that this program was built in, or in the current folder if it was installed
  --help        Print this

Exit status: 0, or 1 if the counter is not used on this machine, or the report or the plot cannot be written.
";

fn main() -> ExitCode {
    let Err(error) = run(env::args().skip(1).collect(), &mut io::stdout().lock()) else {
        return ExitCode::SUCCESS;
    };
    // The reader of a pipe has read enough, and left.
    let kind = error.downcast_ref().map(io::Error::kind);
    if kind != Some(io::ErrorKind::BrokenPipe) {
        eprintln!("accuracy: {error}");
    }
    ExitCode::FAILURE
}

fn run(arguments: Vec<String>, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let (mut seconds, mut file) = (30.0, default_plot(&this_program()));
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value; try --help"));
        match argument.as_str() {
            "--seconds" => seconds = value()?.parse().map_err(|error| format!("--seconds: {error}"))?,
            "--plot" => file = value()?.into(),
            // What `rate` runs.
            rate::CALIBRATE => return rate::calibrate(out),
            "--help" | "-h" => return Ok(out.write_all(HELP.as_bytes())?),
            _ => return Err(format!("unknown argument `{argument}`; try --help").into()),
        }
    }
    if seconds < 0.1 {
        return Err("--seconds: at least 0.1".into());
    }
    let length = Duration::try_from_secs_f64(seconds).map_err(|error| format!("--seconds: {error}"))?;

    measured::settle()?;
    writeln!(out, "status      {}", counter::status())?;
    writeln!(out, "error bound {} ns at the start", counter::error_bound())?;
    writeln!(out, "comparing   for {seconds} s")?;
    let reference = rate::Reference::begin();
    let deviation = Deviation::measure(length);
    let reference = reference.end();
    writeln!(out, "\n{deviation}")?;
    rate::report(reference, out)?;
    writeln!(out)?;
    published::report(out)?;
    writeln!(out)?;
    cost::report(out)?;
    let plot = plot::svg(&deviation.buckets, length);
    write(&file, &plot).map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    writeln!(out, "\nplot        {}", file.display())?;
    match counter::status() {
        Status::Used | Status::Stale => Ok(()),
        status => Err(format!("the counter is not used any more: {status}").into()),
    }
}

/// The file of this program: what /proc says, or, where that is not mounted, the command line.
fn this_program() -> PathBuf {
    env::current_exe().unwrap_or_else(|_| env::args_os().next().unwrap_or_default().into())
}

/// In the target folder, where cargo puts this program two folders down; else in the current
/// folder.
pub(crate) fn default_plot(program: &Path) -> PathBuf {
    let examples = program.parent().filter(|folder| folder.ends_with("examples"));
    let target = examples.and_then(|folder| folder.ancestors().nth(2));
    target.unwrap_or(Path::new("")).join("accuracy.svg")
}

/// Writes a file, and makes its folder.
fn write(file: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(file, text)
}
