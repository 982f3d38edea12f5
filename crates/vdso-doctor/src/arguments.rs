//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand, value_parser};
use clap_complete::Shell;
use vdso_doctor::Read;

const NOTES: &str = "\
Examples:
  vdso-doctor                                what clock reads cost here
  vdso-doctor --quiet || echo slow clock     a check for scripts and probes
  vdso-doctor --require-user-space=TAI,time  a check of other reads
  vdso-doctor --pid 4711                     the vDSO of another process
  vdso-doctor who --pid 4711                 which of its functions read clocks
  vdso-doctor --json | jq .cause             for a program
  vdso-doctor man | man -l -                 the manual page
  vdso-doctor completions bash               completions for a shell

Exit status:
   0  The report is complete, and the required reads stay in user space
   1  A required read enters the kernel
   2  That is unknown, or the command failed
  64  The command line is wrong

A sandbox that kills for prctl(2), sched_setaffinity(2) or a clock call kills
vdso-doctor, too.";

/// Proves whether clock reads stay in user space, and says what to do if not.
#[derive(Parser)]
#[command(name = "vdso-doctor", version, after_help = NOTES, next_line_help = true)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// Show all reads, the clock sources and the routes
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Print one line if a required read may enter the kernel, or nothing
    #[arg(short, long, conflicts_with_all = ["verbose", "json"])]
    pub(crate) quiet: bool,
    /// Examine the vDSO of this process
    #[arg(long, conflicts_with_all = ["quiet", "require_user_space", "verbose"])]
    pub(crate) pid: Option<u32>,
    /// Print JSON
    #[arg(long, conflicts_with = "verbose")]
    pub(crate) json: bool,
    /// Require that these reads stay in user space; the exit status says so.
    /// READS is a list of clocks (REALTIME, CLOCK_TAI, 7) and functions
    /// (time, gettimeofday, getcpu). The default, which --quiet implies, is
    /// REALTIME,MONOTONIC
    #[arg(long, value_name = "READS", value_delimiter = ',', num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "REALTIME,MONOTONIC", verbatim_doc_comment)]
    pub(crate) require_user_space: Option<Vec<Read>>,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Compare the clock of vdso-time's feature `counter` with the kernel's
    Accuracy {
        /// For how long
        #[arg(long, default_value_t = 30, value_parser = value_parser!(u32).range(1..=1_000_000))]
        seconds: u32,
    },
    /// Print the completions for a shell
    Completions { shell: Shell },
    /// Print the manual page, in roff
    Man,
    /// Show which functions of an unmodified program read the clock
    Who(Who),
}

const WHO: &str = "\
Examples:
  vdso-doctor who --pid 4711                      for 10 seconds
  vdso-doctor who --count --pid 4711              reads a second, too
  vdso-doctor who --exact -- ./program --option   every read of a command
  vdso-doctor who --flamegraph=who.svg --pid 4711

Samples show the share of the CPU time, and no numbers of reads. --count uses
the CPU's breakpoints on the vDSO: a counted read costs about 6 us, so
it counts in slices of the time and scales up. Threads of the process are
followed, other processes that it starts are not.

With COMMAND the exit status is the command's, or 128 and the number of the
signal that ended it. Ctrl-C ends the measurement and prints what there is.";

#[derive(Args)]
#[command(after_help = WHO, next_line_help = true)]
#[command(group = ArgGroup::new("process").args(["pid", "command"]).required(true))]
pub(crate) struct Who {
    /// Watch this process
    #[arg(long)]
    pub(crate) pid: Option<u32>,
    /// Run this command and watch it
    #[arg(last = true)]
    pub(crate) command: Vec<OsString>,
    /// For how long; otherwise 10 seconds of a process, or until the command
    /// ends
    #[arg(long, value_name = "SECONDS", value_parser = value_parser!(u32).range(1..), verbatim_doc_comment)]
    pub(crate) duration: Option<u32>,
    /// Samples for each second of a thread's CPU time
    #[arg(long, value_name = "NUMBER", default_value_t = 499, value_parser = value_parser!(u32).range(1..=10_000))]
    pub(crate) frequency: u32,
    /// Count the reads, in slices of the time
    #[arg(long, conflicts_with = "frequency")]
    pub(crate) count: bool,
    /// The share of the time in which --count counts
    #[arg(long, requires = "count", default_value_t = 1, value_parser = value_parser!(u8).range(1..=50))]
    pub(crate) percent: u8,
    /// Count every read, which slows the program down
    #[arg(long, conflicts_with_all = ["frequency", "count"])]
    pub(crate) exact: bool,
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
