//! The command line.

use clap::{Parser, Subcommand, value_parser};
use clap_complete::Shell;
use vdso_doctor::Read;

const NOTES: &str = "\
Examples:
  vdso-doctor                                what clock reads cost here
  vdso-doctor --quiet || echo slow clock     a check for scripts
  vdso-doctor --require-user-space=TAI,time  a check of other reads
  vdso-doctor --pid 4711                     the vDSO of a process
  vdso-doctor --json | jq .cause             for a program
  vdso-doctor --metrics > vdso.prom          for Prometheus
  vdso-doctor man | man -l -                 the manual page
  vdso-doctor completions bash               completions for a shell

Exit status:
   0  The report is complete, and the required reads stay in user space
   1  A required read enters the kernel
   2  That is unknown, or the command failed
  64  The command line is wrong

A sandbox that kills for prctl(2), sched_setaffinity(2) or a clock call kills
vdso-doctor, too.

`vdso-who`, a package of its own, shows which functions of a program read the
clock.

Each clock source, what it costs, and how to change it:
https://docs.rs/crate/vdso-time/latest/source/docs/CLOCK_SOURCES.md";

/// Proves whether clock reads stay in user space, and says what to do if not.
#[derive(Parser)]
#[command(name = "vdso-doctor", version, after_help = NOTES, next_line_help = true)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag")]
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
    /// Print OpenMetrics text, for node_exporter's textfile collector
    #[arg(long, conflicts_with_all = ["verbose", "quiet", "json", "pid"])]
    pub(crate) metrics: bool,
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
    /// Compare vdso-time-counter's clock with the kernel's
    Accuracy {
        /// For how long
        #[arg(long, default_value_t = 30, value_parser = value_parser!(u32).range(1..=1_000_000))]
        seconds: u32,
    },
    /// Print the completions for a shell
    Completions { shell: Shell },
    /// Print a manual page, in roff
    Man {
        /// The page of this subcommand
        #[arg(value_parser = ["accuracy", "completions", "man"])]
        subcommand: Option<String>,
    },
}
