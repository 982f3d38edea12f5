//! The programs that cargo builds for a machine.

use anyhow::Result;
use serde_json::Value;
use vdso_time_kernel_runner::runner::Program;
use xshell::Cmd;

/// Runs cargo, and returns the programs that it built: tests, or the others.
pub(crate) fn executables(cargo: Cmd<'_>, are_tests: bool) -> Result<Vec<Program>> {
    let messages = cargo.arg("--message-format=json-render-diagnostics").read()?;
    Ok(messages.lines().filter_map(|message| executable(message, are_tests)).collect())
}

fn executable(message: &str, is_test: bool) -> Option<Program> {
    let message: Value = serde_json::from_str(message).ok()?;
    let path = message["executable"].as_str()?.to_owned();
    let name = message["target"]["name"].as_str()?.to_owned();
    (message["profile"]["test"] == is_test).then(|| Program { name, path, arguments: Vec::new() })
}
