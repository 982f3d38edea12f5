//! The command line.

use std::path::PathBuf;

use lexopt::prelude::*;
use vdso_doctor::{Method, Read};

pub(crate) const HELP: &str = "\
Proves whether clock reads stay in user space on this machine, and says what to do if they do not.

Usage: vdso-doctor [--json] [--require-user-space[=READS]] [--method=METHOD]
       vdso-doctor accuracy [--seconds=N] [--plot=FILE]

  --json                        Print JSON
  --require-user-space[=READS]  Exit with status 1 if one of the READS enters the kernel, and with
                                status 2 if that is unknown. READS is a list of clocks (REALTIME,
                                CLOCK_TAI, 7) and functions (time, gettimeofday, getcpu), separated
                                by commas. The default is REALTIME,MONOTONIC
  --method=METHOD               How to detect system calls: dispatch (Syscall User Dispatch),
                                seccomp, or timing (no proof). The default is the first that works
  --help                        Print this

accuracy compares the clock of vdso-time's feature `counter` with the kernel's clocks:

  --seconds=N                   For how long. The default is 30
  --plot=FILE                   Plot the deviation over time as an SVG

Exit status:
   0  The report is complete, and --require-user-space, if given, is satisfied
   1  A read that --require-user-space names enters the kernel
   2  That is unknown, the method or the counter does not work here, or the output cannot be written
  64  The command line is wrong

A sandbox that kills for prctl(2), sched_setaffinity(2) or a clock call kills vdso-doctor, too.
";

#[derive(Debug, PartialEq)]
pub(crate) enum Command {
    Help,
    Diagnose,
    Accuracy { seconds: f64, plot: Option<PathBuf> },
}

#[derive(Debug)]
pub(crate) struct Arguments {
    pub(crate) command: Command,
    pub(crate) json: bool,
    pub(crate) required: Option<Vec<Read>>,
    pub(crate) method: Option<Method>,
}

pub(crate) fn parse(mut parser: lexopt::Parser) -> Result<Arguments, lexopt::Error> {
    let mut parsed = Arguments { command: Command::Diagnose, json: false, required: None, method: None };
    let mut is_first = true;
    while let Some(argument) = parser.next()? {
        match (argument, &mut parsed.command) {
            (Short('h') | Long("help"), command) => *command = Command::Help,
            (Value(word), command) if is_first && word == "accuracy" => {
                *command = Command::Accuracy { seconds: 30.0, plot: None };
            }
            (Long("seconds"), Command::Accuracy { seconds, .. }) => {
                *seconds = parser.value()?.parse()?;
                if !(0.1..=1e6).contains(seconds) {
                    return Err("--seconds: from 0.1 to 1000000".into());
                }
            }
            (Long("plot"), Command::Accuracy { plot, .. }) => *plot = Some(parser.value()?.into()),
            (Long("json"), Command::Diagnose | Command::Help) => parsed.json = true,
            (Long("require-user-space"), Command::Diagnose | Command::Help) => {
                parsed.required = Some(reads(&mut parser)?);
            }
            (Long("method"), Command::Diagnose | Command::Help) => {
                let name = parser.value()?.string()?;
                let method = Method::ALL.into_iter().find(|method| method.name() == name);
                parsed.method = Some(method.ok_or_else(|| format!("unknown method `{name}`"))?);
            }
            (argument, _) => return Err(argument.unexpected()),
        }
        is_first = false;
    }
    Ok(parsed)
}

/// The value of `--require-user-space`, which may also be the next word.
fn reads(parser: &mut lexopt::Parser) -> Result<Vec<Read>, lexopt::Error> {
    let value = parser.optional_value().or_else(|| {
        let mut words = parser.try_raw_args()?;
        words.next_if(|word| !word.to_string_lossy().starts_with('-'))
    });
    let Some(value) = value else { return Ok(Read::USUAL.to_vec()) };
    let mut reads = Vec::new();
    for name in value.string()?.split(',') {
        let read = name.parse::<Read>()?;
        if !reads.contains(&read) {
            reads.push(read);
        }
    }
    Ok(reads)
}
