//! What the test programs share. It is a copy of a few lines of dev/test-support, so that this
//! package needs nothing of the repository around it.

use std::fmt::Display;
use std::io::Write as _;
use std::process::{Command, Output};

/// Reports that a test, or the rest of it, is not run, and why.
pub(crate) fn not_run_here(reason: impl Display) {
    let reason = reason.to_string();
    let words: Vec<&str> = reason.split_whitespace().collect();
    // Not with `println!`: the output of a test that passes is not shown.
    let _ = writeln!(std::io::stdout(), "not run here: {}", words.join(" "));
}

/// Returns whether a program works with these arguments. If it does not, the test is not run.
pub(crate) fn has_tool(program: &str, arguments: &[&str]) -> bool {
    match Command::new(program).args(arguments).output() {
        Ok(Output { status, .. }) if status.success() => true,
        Ok(Output { status, stderr, .. }) => {
            let errors = String::from_utf8_lossy(&stderr);
            not_run_here(format!("{program} does not work: {status}: {errors}"));
            false
        }
        Err(error) => {
            not_run_here(format!("{program}: {error}"));
            false
        }
    }
}
