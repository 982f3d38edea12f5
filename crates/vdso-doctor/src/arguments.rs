//! The command line.

use clap::{Parser, Subcommand, value_parser};
use vdso_doctor::Read;

const NOTES: &str = "\
Exit status:
   0  The report is complete, and --require-user-space, if given, is satisfied
   1  A read that --require-user-space names enters the kernel
   2  That is unknown, the counter does not work here, or the report cannot be written
  64  The command line is wrong

A sandbox that kills for prctl(2), sched_setaffinity(2) or a clock call kills vdso-doctor, too.";

/// Proves whether clock reads stay in user space on this machine, and says what to do if they do not
#[derive(Parser)]
#[command(version, after_help = NOTES, args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Exit with status 1 if one of the READS enters the kernel, and with
    /// status 2 if that is unknown. READS is a list of clocks (REALTIME,
    /// CLOCK_TAI, 7) and functions (time, gettimeofday, getcpu), separated
    /// by commas. The default is REALTIME,MONOTONIC
    #[arg(long, value_name = "READS", value_delimiter = ',', num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "REALTIME,MONOTONIC", verbatim_doc_comment)]
    pub(crate) require_user_space: Option<Vec<Read>>,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Compare the clock of vdso-time's feature `counter` with the kernel's clocks
    Accuracy {
        /// For how long
        #[arg(long, default_value_t = 30, value_parser = value_parser!(u32).range(1..=1_000_000))]
        seconds: u32,
    },
}
