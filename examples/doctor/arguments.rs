//! The command line.

use vdso_time::ClockId;

use super::proof::Method;
use super::read::Read;

pub(crate) const HELP: &str = "\
Says where this machine's time comes from, whether reading it stays in user space, and what it costs.

Usage: doctor [OPTION]...

  --json                        Print JSON, all at once
  --require-user-space[=READS]  Exit with status 1 if one of the READS enters the kernel, and with status 2
                                if that cannot be determined. READS is a list of clocks (REALTIME,
                                CLOCK_TAI, 7) and functions (time, gettimeofday, getcpu), separated by
                                commas. The default is REALTIME,MONOTONIC
  --method=METHOD               How to detect a system call: dispatch (Syscall User Dispatch), seccomp, or
                                timing (no proof). The default is the first of these that works here
  --help                        Print this

Exit status:
   0  The report is complete, and --require-user-space, if given, is satisfied
   1  A read that --require-user-space names enters the kernel
   2  That cannot be determined, or the method does not work here, or the report cannot be written: standard
      output is closed or full, or its reader left before the end, which ends the doctor without a message
  64  The command line is wrong

A sandbox that kills on prctl(2), sched_setaffinity(2) or a clock call kills the doctor, too.

To install it: cargo install --path . --example doctor, in a checkout (vdso-time is not on crates.io yet).
";

/// What is asked for.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Arguments {
    pub(crate) help: bool,
    pub(crate) json: bool,
    pub(crate) required: Option<Vec<Read>>,
    pub(crate) method: Option<Method>,
}

/// The reads that a verdict is about if none are named.
pub(crate) const USUAL: [Read; 2] =
    [Read::ClockGettime(ClockId::REALTIME), Read::ClockGettime(ClockId::MONOTONIC)];

/// Makes sense of the command line.
pub(crate) fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Arguments, String> {
    let mut parsed = Arguments::default();
    let mut arguments = arguments.into_iter().peekable();
    while let Some(argument) = arguments.next() {
        let (name, mut value) = match argument.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (argument.as_str(), None),
        };
        let takes_value = ["--require-user-space", "--method"].contains(&name);
        if takes_value && value.is_none() {
            value = arguments.next_if(|next| !next.starts_with('-'));
        }
        match (name, value) {
            ("--help" | "-h", None) => parsed.help = true,
            ("--json", None) => parsed.json = true,
            ("--require-user-space", None) => parsed.required = Some(USUAL.to_vec()),
            ("--require-user-space", Some(reads)) => {
                let mut required = Vec::new();
                for read in reads.split(',').map(read) {
                    let read = read?;
                    if !required.contains(&read) {
                        required.push(read);
                    }
                }
                parsed.required = Some(required);
            }
            ("--method", Some(name)) => {
                let method = Method::ALL.into_iter().find(|method| method.name() == name);
                parsed.method = Some(method.ok_or_else(|| format!("unknown method `{name}`"))?);
            }
            ("--method", None) => return Err("--method needs a value".into()),
            _ => return Err(format!("unknown argument `{argument}`")),
        }
    }
    Ok(parsed)
}

/// A clock by its name or number, or a function that takes none.
fn read(name: &str) -> Result<Read, String> {
    let functions = [Read::Time, Read::Gettimeofday, Read::Getcpu];
    if let Some(function) = functions.into_iter().find(|read| name.eq_ignore_ascii_case(read.function())) {
        return Ok(function);
    }
    let is_called = |clock: &ClockId| {
        let full = format!("{clock:?}");
        let short = full.strip_prefix("CLOCK_").unwrap_or(&full);
        name.eq_ignore_ascii_case(&full) || name.eq_ignore_ascii_case(short)
    };
    let number = name.parse().ok().map(ClockId::from_raw);
    let clock = number.or_else(|| (0..24).map(ClockId::from_raw).find(is_called));
    clock.map(Read::ClockGettime).ok_or_else(|| format!("unknown clock or function `{name}`"))
}
