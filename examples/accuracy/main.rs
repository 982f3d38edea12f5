//! How true the counter clock is: its deviation from the kernel's clocks over a while, its rate, and what it costs.
//!
//! `cargo run --release --features counter --example accuracy [-- --seconds N] [--plot FILE]`

#![allow(clippy::cast_precision_loss, reason = "what is printed has three digits")]

mod cost;
mod deviation;
mod measured;
mod plot;
mod published;
mod rate;

use std::process::ExitCode;
use std::time::Duration;
use std::{env, fs};

use deviation::Deviation;
use vdso_time::counter::{self, Status};

const HELP: &str = "\
How true the counter clock is to the kernel's, and what it costs.

Usage: accuracy [--seconds N] [--plot FILE]

  --seconds N   how long to compare (30)
  --plot FILE   where the plot of the deviation over time goes (target/accuracy.svg)
";

fn main() -> ExitCode {
    match run(env::args().skip(1).collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("accuracy: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Vec<String>) -> Result<(), String> {
    let (mut seconds, mut file) = (30.0, "target/accuracy.svg".to_owned());
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--seconds" => seconds = value()?.parse().map_err(|error| format!("--seconds: {error}"))?,
            "--plot" => file = value()?,
            // What `rate` runs.
            rate::CALIBRATE => return rate::calibrate(),
            "--help" => {
                print!("{HELP}");
                return Ok(());
            }
            _ => return Err(format!("unknown argument `{argument}`; try --help")),
        }
    }
    if seconds < 0.1 {
        return Err("--seconds: at least 0.1".into());
    }
    let length = Duration::try_from_secs_f64(seconds).map_err(|error| format!("--seconds: {error}"))?;

    measured::settle()?;
    println!("status      {}", counter::status());
    println!("error bound {} ns", counter::error_bound());
    let reference = rate::Reference::begin();
    let deviation = Deviation::measure(length);
    let reference = reference.end();
    println!("\ndeviation, ns    p50    p99  p99.9    max   of reads");
    println!("MONOTONIC     {}", deviation.monotonic);
    println!("REALTIME      {}", deviation.realtime);
    println!("backward steps {}; {} reads were interrupted and are left out", deviation.back, deviation.wide);
    println!("rate over the whole: {:+.2} ppb of the kernel's\n", deviation.rate_error());
    rate::report(reference)?;
    println!();
    published::report();
    println!();
    cost::report();
    plot::write(&file, &deviation.buckets, length).map_err(|error| format!("{file}: {error}"))?;
    println!("\nplot        {file}");
    match counter::status() {
        Status::Used | Status::Stale => Ok(()),
        status => Err(format!("the counter is not used any more: {status}")),
    }
}

/// Writes a file, and makes its folder.
fn write(file: &str, text: &str) -> std::io::Result<()> {
    if let Some(folder) = std::path::Path::new(file).parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(file, text)
}
