//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgGroup, Parser, Subcommand, value_parser};
use clap_complete::Shell;
use vdso_who::Options;

const NOTES: &str = "\
Examples:
  vdso-who --pid 4711                      for 10 seconds
  vdso-who --count --pid 4711              reads a second, too
  vdso-who --exact -- ./program --option   every read of a command
  vdso-who --flamegraph=who.svg --pid 4711
  vdso-who man | man -l -                  the manual page

Samples show the share of the CPU time, and no numbers of reads. --count uses
the CPU's breakpoints on the vDSO: a counted read costs about 6 us, so
it counts in slices of the time and scales up. Threads of the process are
followed, other processes that it starts are not.

With COMMAND the exit status is the command's, or 128 and the number of the
signal that ended it. Ctrl-C ends the measurement and prints what there is.

`vdso-doctor` says what clock reads cost on this machine.";

/// Shows which functions of an unmodified program read the clock
#[derive(Parser)]
#[command(name = "vdso-who", version, after_help = NOTES, next_line_help = true)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true
)]
#[command(group = ArgGroup::new("process").args(["pid", "command"]).required(true))]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) print: Option<Print>,
    /// Watch this process
    #[arg(long)]
    pid: Option<u32>,
    /// Run this command and watch it
    #[arg(last = true)]
    command: Vec<OsString>,
    /// For how long; otherwise 10 seconds of a process, or until the command
    /// ends
    #[arg(long, value_name = "SECONDS", value_parser = value_parser!(u32).range(1..), verbatim_doc_comment)]
    duration: Option<u32>,
    /// Samples for each second of a thread's CPU time
    #[arg(long, value_name = "NUMBER", default_value_t = 499, value_parser = value_parser!(u32).range(1..=10_000))]
    frequency: u32,
    /// Count the reads, in slices of the time
    #[arg(long, conflicts_with = "frequency")]
    count: bool,
    /// The share of the time in which --count counts
    #[arg(long, requires = "count", default_value_t = 1, value_parser = value_parser!(u8).range(1..=50))]
    percent: u8,
    /// Count every read, which slows the program down
    #[arg(long, conflicts_with_all = ["frequency", "count"])]
    exact: bool,
    /// Write a flame graph of the reads to this file, in SVG
    #[arg(long, value_name = "FILE")]
    pub(crate) flamegraph: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the report to this file, not among the command's output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Subcommand)]
pub(crate) enum Print {
    /// Print the completions for a shell
    Completions { shell: Shell },
    /// Print the manual page, in roff
    Man,
}

impl Arguments {
    pub(crate) fn options(&self) -> Options {
        Options {
            pid: self.pid,
            command: self.command.clone(),
            duration: self.duration,
            frequency: self.frequency,
            count: self.count,
            percent: self.percent,
            exact: self.exact,
            folded: self.flamegraph.is_some(),
        }
    }
}
