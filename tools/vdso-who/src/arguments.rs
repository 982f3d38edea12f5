//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgGroup, Parser, Subcommand, value_parser};
use clap_complete::Shell;
use vdso_who::{Options, Subject};

const NOTES: &str = "\
Examples:
  vdso-who --pid 4711                      for 10 seconds
  vdso-who -- ./program --option           until the program ends
  vdso-who --exact -- ./program --option   every read
  vdso-who --all                           all processes, as top
  vdso-who --folded --pid 4711 | flamegraph.pl >who.svg
  vdso-who man | man -l -                  the manual page

Samples show the share of the CPU time. The reads a second are an estimate.
--exact counts reads by breakpoints, which cost 10 to 20 us each, and guards
the command from the signals that they cause on some virtual machines.

Without --exact the processes that COMMAND starts are watched, too.

With COMMAND the exit status is the command's, or 128 and the number of the
signal that ended it. Otherwise:
   0  A report was written; if no share is known, it says so
   2  The command failed
  64  The command line is wrong

Ctrl-C ends the measurement and prints what there is.

`vdso-doctor` says where this machine answers clock reads, and why.";

/// Shows which functions of an unmodified program read the clock
#[derive(Parser)]
#[command(name = "vdso-who", version, after_help = NOTES, next_line_help = true)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(disable_help_subcommand = true)]
#[command(group = ArgGroup::new("subject").args(["pid", "command", "cgroup", "all"]).required(true))]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) print: Option<Print>,
    /// Watch this process
    #[arg(long)]
    pid: Option<u32>,
    /// Run this command and watch it; without --exact, also what it starts
    #[arg(last = true)]
    command: Vec<OsString>,
    /// Watch the processes of this cgroup, a folder of /sys/fs/cgroup
    #[arg(long, value_name = "FOLDER")]
    cgroup: Option<PathBuf>,
    /// Watch all processes
    #[arg(long)]
    all: bool,
    /// For how long; otherwise until the command ends, or 10 seconds
    #[arg(long, value_name = "SECONDS", value_parser = value_parser!(u32).range(1..))]
    duration: Option<u32>,
    /// Samples for each second of CPU time
    #[arg(long, value_name = "NUMBER", default_value_t = 499)]
    #[arg(value_parser = value_parser!(u32).range(1..=10_000))]
    frequency: u32,
    /// Count every read of COMMAND, which slows it down
    #[arg(long, conflicts_with_all = ["frequency", "cgroup", "all"])]
    exact: bool,
    /// With --exact --pid: without a guard, a breakpoint ends the process by
    /// SIGTRAP on some virtual machines
    #[arg(long, requires = "exact", conflicts_with_all = ["command", "cgroup", "all"], verbatim_doc_comment)]
    may_end_process: bool,
    /// Download missing debug information by debuginfod-find(1)
    #[arg(long)]
    debuginfod: bool,
    /// Print call chains for flamegraph.pl, inferno or speedscope
    #[arg(long, conflicts_with = "json")]
    pub(crate) folded: bool,
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
        let subject = match (self.pid, &self.cgroup) {
            (Some(pid), _) => Subject::Process(pid),
            (_, Some(folder)) => Subject::Cgroup(folder.clone()),
            _ if self.all => Subject::Host,
            _ => Subject::Command(self.command.clone()),
        };
        Options {
            duration: self.duration,
            frequency: self.frequency,
            exact: self.exact,
            may_end_process: self.may_end_process,
            folded: self.folded,
            debuginfod: self.debuginfod,
            subject,
        }
    }
}
