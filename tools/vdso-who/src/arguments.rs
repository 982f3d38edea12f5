//! The command line.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind::MissingRequiredArgument;
use clap::{ArgGroup, Parser, ValueEnum, value_parser};
use serde::{Deserialize, Serialize};

use crate::{console, pages, perf};

const NOTES: &str = "\
Examples:
  vdso-who -p 4711                        watch a process for 10 seconds
  vdso-who ./program --option             watch a command until it ends
  vdso-who --exact ./program --option     count every vDSO read of a command
  vdso-who -p 4711 -o who.svg             write a flame graph for a browser
  vdso-who -p 4711 --json -o before.json  save a report to compare with later
  vdso-who -p 4711 --compare before.json  see whether a change has helped
  vdso-who top                            show all processes, every second
  vdso-who top --json                     print a line of JSON every second
  vdso-who --all --group-by unit          see which service reads the clock
  vdso-who --generate man | man -l -      show the manual page

Shares of CPU time come from samples. Reads per second are an estimate.
--exact counts the reads in the vDSO with breakpoints, which cost 10 to 20 us
each. On some virtual machines breakpoints raise signals, which vdso-who does
not pass on to the command.

A COMMAND called `top` or `record` needs `--` before it.

With COMMAND, the exit status is the command's, or 128 plus the number of the
signal that ended it. Otherwise:
   0  A report was written; if no share is known, it gives the reason
   2  The measurement failed, or the report could not be written
  64  The command line is wrong

Ctrl-C ends the measurement and prints the report so far.

[anon] is code in anonymous memory without a perf map: just-in-time compiled
code, or code that the program moved there (node --use-largepages, BOLT).

`vdso-doctor` shows where clock reads are answered on this machine, and why.";

/// Shows which functions of an unmodified program read the clock
#[derive(Debug, Parser)]
#[command(name = "vdso-who", version, after_help = NOTES, next_line_help = true)]
#[command(override_usage = "vdso-who [OPTIONS] <--pid PID|COMMAND|--cgroup DIRECTORY|--all>")]
#[command(group = ArgGroup::new("subject").args(["pid", "command", "cgroup", "all", "generate"]).required(true))]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct Arguments {
    /// Watch this process and its descendants
    #[arg(short, long)]
    pub(crate) pid: Option<u32>,
    /// Run this command, and watch it and its descendants
    #[arg(trailing_var_arg = true)]
    pub(crate) command: Vec<OsString>,
    /// Watch the processes of this cgroup, a directory under /sys/fs/cgroup
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) cgroup: Option<PathBuf>,
    /// Watch all processes
    #[arg(short, long)]
    pub(crate) all: bool,
    /// Do not follow child processes (--exact implies this)
    #[arg(long, conflicts_with_all = ["cgroup", "all"])]
    no_children: bool,
    /// What each row stands for [default: the processes with the same
    /// name; with --pid, each process, but after the first 7 of a name,
    /// the others share a row]
    #[arg(long, value_name = "WHAT", verbatim_doc_comment)]
    pub(crate) group_by: Option<GroupBy>,
    /// How many functions a row shows: the function that reads the clock,
    /// its caller, and so on
    #[arg(long, value_name = "N", default_value_t = 2, verbatim_doc_comment)]
    #[arg(value_parser = value_parser!(u16).range(1..=128))]
    depth: u16,
    /// Refresh the table every N seconds until `q` or Ctrl-C is pressed.
    /// With --json, print one line of JSON every N seconds
    #[arg(short, long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    #[arg(verbatim_doc_comment, overrides_with = "interval", conflicts_with_all = ["folded", "output", "exact"])]
    pub(crate) interval: Option<u32>,
    /// How long to measure [default: until COMMAND exits, otherwise 10 s]
    #[arg(short, long, value_name = "SECONDS", value_parser = value_parser!(u32).range(1..))]
    pub(crate) duration: Option<u32>,
    /// Samples per second of CPU time [default: 499; fewer with more than
    /// 8 CPUs, so that all CPUs together take about 4000 samples a second]
    #[arg(short = 'F', long, value_name = "NUMBER", verbatim_doc_comment)]
    #[arg(visible_alias = "rate", visible_short_alias = 'r')]
    #[arg(value_parser = value_parser!(u32).range(1..=10_000))]
    frequency: Option<u32>,
    /// Count every vDSO read of COMMAND, which slows COMMAND down
    #[arg(long, conflicts_with_all = ["frequency", "pid", "cgroup", "all"])]
    pub(crate) exact: bool,
    /// Download missing debug information with debuginfod-find(1)
    #[arg(long)]
    pub(crate) debuginfod: bool,
    /// Print call chains for flamegraph.pl, inferno or speedscope
    #[arg(long, conflicts_with = "json")]
    pub(crate) folded: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Compare the shares with the shares of an earlier --json report
    #[arg(long, value_name = "FILE", conflicts_with_all = ["interval", "exact", "folded"])]
    pub(crate) compare: Option<PathBuf>,
    /// Write the report to this file; if its name ends with .svg, the
    /// report is a flame graph
    #[arg(short, long, value_name = "FILE", verbatim_doc_comment)]
    pub(crate) output: Option<PathBuf>,
    /// Print the manual page (man) or completions (bash, fish, zsh)
    #[arg(long, value_name = "WHAT", value_parser = ["man", "bash", "fish", "zsh"], exclusive = true, hide_possible_values = true)]
    pub(crate) generate: Option<String>,
    /// Accepted and ignored, for users of strace (-f) and perf (-g)
    #[arg(short = 'f', short_alias = 'g', long, hide = true)]
    follow_forks: bool,
}

/// What each row of the report stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum GroupBy {
    /// Each thread has its own row.
    Thread,
    /// Each process has its own row.
    Process,
    /// Processes with the same name and unit share a row.
    #[default]
    Name,
    /// Processes of a systemd unit, container or pod share a row.
    Unit,
}

/// The error for a command line that names nothing to watch.
const WHAT_TO_WATCH: &str = "say what to watch: -p PID, a COMMAND, --all, --cgroup DIRECTORY, or \
                             `vdso-who top` (see `vdso-who --help`)";

/// The error for --compare with a flame graph.
const NO_COMPARISON: &str = "--compare prints a table or JSON, but not a flame graph: write to a \
                             file whose name does not end with .svg (see `vdso-who --help`)";

/// The action that a command line asks for.
pub(crate) enum Request {
    Measure(Box<Arguments>),
    /// The help, the version, the manual page or completions.
    Print(String),
    /// The error text of a wrong command line.
    Wrong(String),
}

impl Arguments {
    /// Reads the command line of this program.
    pub(crate) fn request() -> Request {
        let is_top = env::args_os().nth(1).is_some_and(|word| word == "top");
        match Self::try_parse_from(Self::words(env::args_os())) {
            Err(error) if error.kind() == MissingRequiredArgument => {
                Request::Wrong(WHAT_TO_WATCH.into())
            }
            Err(error) if error.use_stderr() => {
                let mut message = console::usage(&error);
                if is_top {
                    message = message.replace("--interval <N>", "top");
                }
                Request::Wrong(message)
            }
            Err(help) => Request::Print(help.to_string()),
            Ok(arguments) => match &arguments.generate {
                Some(page) => Request::Print(pages::text(page).into()),
                None if arguments.compare.is_some() && arguments.is_svg() => {
                    Request::Wrong(NO_COMPARISON.into())
                }
                None => Request::Measure(arguments.into()),
            },
        }
    }

    /// Returns the number of samples per second of CPU time. Each sample contains a copy of the
    /// stack, so 499 samples a second from each CPU would be too much data on a host with many
    /// CPUs. The default is therefore lower on such a host.
    pub(crate) fn frequency(&self) -> u32 {
        const DEFAULT: u32 = 499;
        const OF_ALL: u32 = 4000;
        const LEAST: u32 = 49;
        if let Some(frequency) = self.frequency {
            return frequency;
        }
        let cpus = perf::online_cpus().unwrap_or_default().len() as u32;
        (OF_ALL / cpus.max(1)).clamp(LEAST, DEFAULT)
    }

    /// Returns the maximum number of functions in a row.
    pub(crate) fn depth(&self) -> usize {
        self.depth.into()
    }

    /// Returns whether the target is a command, which this program starts itself.
    pub(crate) fn has_command(&self) -> bool {
        !self.command.is_empty()
    }

    /// Returns whether descendants are watched. With --exact they are not: only the command itself
    /// gets breakpoints. If a descendant had breakpoints, nothing would swallow the SIGTRAP that a
    /// breakpoint can raise, because a [`Guard`](crate::guard::Guard) does not trace descendants.
    pub(crate) fn follows(&self) -> bool {
        !self.no_children && !self.exact && (self.pid.is_some() || self.has_command())
    }

    /// Returns which processes share a row: by default the processes with the same name, but with
    /// --pid each process has its own row.
    pub(crate) fn grouping(&self) -> GroupBy {
        match self.group_by {
            Some(group_by) => group_by,
            None if self.pid.is_some() => GroupBy::Process,
            None => GroupBy::Name,
        }
    }

    /// Returns whether the call chains are kept.
    pub(crate) fn keeps_chains(&self) -> bool {
        self.folded || self.is_svg()
    }

    /// Returns whether the report is a flame graph: the name of its file ends with `.svg`.
    pub(crate) fn is_svg(&self) -> bool {
        let path = self.output.as_deref();
        let Some(extension) = path.and_then(|path| path.extension()) else {
            return false;
        };
        extension.eq_ignore_ascii_case("svg")
    }

    /// Replaces the words `record` and `top`, which users of perf and py-spy type. `record` is
    /// removed, because recording is the default here. `top` becomes `--interval=1`, and `--all` is
    /// added if the command line does not say what to watch.
    fn words(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
        let mut words: Vec<_> = words.collect();
        let Some(first) = words.get(1) else {
            return words;
        };
        if first == "record" {
            words.remove(1);
        } else if first == "top" {
            words[1] = "--interval=1".into();
            if let Err(error) = Self::try_parse_from(&words) {
                if error.kind() == MissingRequiredArgument {
                    words.push("--all".into());
                }
            }
        }
        words
    }
}

#[cfg(test)]
pub(crate) fn arguments(line: &str) -> Arguments {
    Arguments::parse_from(std::iter::once("vdso-who").chain(line.split(' ')))
}

#[cfg(test)]
pub(crate) fn command() -> clap::Command {
    <Arguments as clap::CommandFactory>::command()
}
