//! The command line.

use clap::{Arg, ArgAction, Command, value_parser};
use vdso_doctor::Read;
use vdso_time::ClockId;

const NOTES: &str = "\
Examples:
  vdso-doctor                                what clock reads cost here
  vdso-doctor --quiet || echo slow/unknown   a check for scripts
  vdso-doctor --require-user-space=TAI,time  a check of other reads
  vdso-doctor --pid 4711                     the vDSO of a process
  vdso-doctor --json | jq .cause             for a program
  vdso-doctor --metrics > vdso.prom          for Prometheus

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

const READS: &str = "\
Require that these reads stay in user space; the exit status says so.
READS is a list of clocks (REALTIME, CLOCK_TAI, 7) and functions
(time, gettimeofday, getcpu). The default, which --quiet implies, is
REALTIME,MONOTONIC";

pub(crate) fn command() -> Command {
    let flag = |name, help| Arg::new(name).long(name).action(ArgAction::SetTrue).help(help);
    let pid = Arg::new("pid").long("pid").value_name("PID").value_parser(value_parser!(u32));
    let reads = Arg::new("require-user-space").long("require-user-space").value_name("READS");
    let seconds = Arg::new("seconds").long("seconds").value_name("SECONDS").default_value("30");
    Command::new("vdso-doctor")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Proves whether clock reads stay in user space, and says what to do if not")
        .after_help(NOTES)
        .next_line_help(true)
        .args_conflicts_with_subcommands(true)
        .disable_help_subcommand(true)
        .arg(flag("verbose", "Show all reads, the clock sources and the routes").short('v'))
        .arg(
            flag("quiet", "Print nothing, or one line if a required read may enter the kernel")
                .short('q')
                .conflicts_with_all(["verbose", "json"]),
        )
        .arg(pid.help("Examine the vDSO of this process").conflicts_with_all([
            "quiet",
            "require-user-space",
            "verbose",
        ]))
        .arg(flag("json", "Print JSON").conflicts_with("verbose"))
        .arg(
            flag("metrics", "Print OpenMetrics text, for node_exporter's textfile collector")
                .conflicts_with_all(["verbose", "quiet", "json", "pid"]),
        )
        .arg(
            reads
                .value_delimiter(',')
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("REALTIME,MONOTONIC")
                .value_parser(read)
                .action(ArgAction::Append)
                .help(READS),
        )
        .subcommand(
            Command::new("accuracy")
                .about("Compare vdso-time-counter's clock with the kernel's")
                .arg(seconds.value_parser(value_parser!(u32).range(1..=1_000_000)).help("For how long")),
        )
        .subcommands(crate::pages::subcommands())
}

/// Parses the name of a function, or the name or number of a clock of clock_gettime(2).
fn read(name: &str) -> Result<Read, String> {
    let functions = [Read::Time, Read::Gettimeofday, Read::Getcpu];
    if let Some(read) = functions.into_iter().find(|read| name.eq_ignore_ascii_case(read.function())) {
        return Ok(read);
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
