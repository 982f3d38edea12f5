//! The command line.

use clap::{Arg, ArgAction, Command, value_parser};
use vdso_doctor::Call;
use vdso_time::ClockId;

/// The text that `--help` prints after the options.
const NOTES: &str = include_str!("help.txt");

const CALLS: &str = "\
Require that these calls stay in user space: if one does not, the exit
status is 1. CALLS is a list of clocks (REALTIME, CLOCK_TAI, 7) and
functions (time, gettimeofday, getcpu). The default, which --quiet
implies, is REALTIME,MONOTONIC";

const PAGE: &str = "Print the manual page (man) or completions (bash, fish, zsh)";

pub(crate) fn command() -> Command {
    let verbose = flag(
        "verbose",
        "Show all calls, the clock sources and the routes",
    )
    .short('v');
    let quiet = flag(
        "quiet",
        "Print nothing, or one line if a required call may enter the kernel",
    )
    .short('q')
    .conflicts_with_all(["verbose", "json"]);
    let pid = option("pid", "PID", "Examine the vDSO of the process PID")
        .value_parser(value_parser!(u32))
        .conflicts_with_all(["quiet", "require-user-space", "verbose"]);
    let json = flag("json", "Print JSON").conflicts_with("verbose");
    let metrics = flag(
        "metrics",
        "Print OpenMetrics text, for node_exporter's textfile collector",
    )
    .conflicts_with_all(["verbose", "quiet", "json", "pid"]);
    let calls = option("require-user-space", "CALLS", CALLS)
        .value_delimiter(',')
        .num_args(0..=1)
        .require_equals(true)
        .default_missing_value("REALTIME,MONOTONIC")
        .value_parser(call)
        .action(ArgAction::Append);
    let page = option("generate", "WHAT", PAGE)
        .exclusive(true)
        .value_parser(["man", "bash", "fish", "zsh"])
        .hide_possible_values(true);
    Command::new("vdso-doctor")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Proves whether clock reads stay in user space, and says what to do if not")
        .after_help(NOTES.trim_end())
        .next_line_help(true)
        .args([verbose, quiet, pid, json, metrics, calls, page])
}

fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .action(ArgAction::SetTrue)
        .help(help)
}

fn option(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

/// Parses the name of a function, or the name or number of a clock of clock_gettime(2).
fn call(name: &str) -> Result<Call, String> {
    for call in [Call::Time, Call::Gettimeofday, Call::Getcpu] {
        if name.eq_ignore_ascii_case(call.function()) {
            return Ok(call);
        }
    }
    if let Ok(number) = name.parse() {
        return Ok(ClockId::from_raw(number).into());
    }
    let upper = name.to_ascii_uppercase();
    let short = upper.strip_prefix("CLOCK_").unwrap_or(&upper);
    match format!("CLOCK_{short}").parse::<ClockId>() {
        Ok(clock) => Ok(clock.into()),
        Err(_) => Err(format!("unknown clock or function `{name}`")),
    }
}
