//! Tests that run the program, and the functions that they share.

mod callers;
mod command;
mod command_line;
#[path = "../common/mod.rs"]
mod common;
mod compiled;
mod filter;
mod schema;
mod subjects;

use std::io;
use std::process::{Command, Output, Stdio};

use command::Ended;
use common::not_run_here;
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_vdso-who");

fn who(arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Returns how a command ended and what it printed, or `None` if the kernel could not start it.
/// Fails if a line on standard error has more than 80 columns.
fn started(output: io::Result<Output>) -> Option<Ended> {
    command::started(output).inspect(|(.., error)| assert!(fits(error), "{error}"))
}

/// Returns whether the kernel can start vdso-who. In QEMU's user mode it can only if it knows the
/// emulator (binfmt_misc). Otherwise execvp(3), which shells and std use, would pass vdso-who to a
/// shell as a script. So a test that starts vdso-who in such a way asks first.
fn can_be_started() -> bool {
    started(who(&["--version"]).output()).is_some()
}

/// Returns how a command ended and what it printed, or `None` if processes cannot be watched here.
fn watched(output: io::Result<Output>) -> Option<Ended> {
    let (status, out, error) = started(output)?;
    let lacks = [
        "perf_event_open",
        "breakpoints",
        "gVisor",
        "no vDSO",
        "ptrace(2)",
        "ENOSYS",
        "cannot run",
    ];
    if status == Some(2) && lacks.iter().any(|lack| error.contains(lack)) {
        not_run_here(error);
        return None;
    }
    Some((status, out, error))
}

fn run(arguments: &[&str]) -> Option<Ended> {
    watched(who(arguments).output())
}

/// Takes the output of `vdso-who --json -- COMMAND` apart: what the command printed, and the
/// report. Fails if the status is not 0.
fn report(output: io::Result<Output>) -> Option<(String, Value)> {
    let (status, out, error) = watched(output)?;
    assert_eq!((status, &*error), (Some(0), ""), "{out}");
    let (said, json) = out.split_at(out.find('{').unwrap_or(0));
    Some((said.into(), schema::checked(json)))
}

/// Returns the callers of all processes.
fn callers(report: &Value) -> impl Iterator<Item = &Value> {
    let processes = report["processes"].as_array().unwrap().iter();
    processes.flat_map(|process| process["callers"].as_array().unwrap())
}

/// Returns whether each line has at most 80 columns.
fn fits(text: &str) -> bool {
    text.lines().all(|line| line.chars().count() <= 80)
}
