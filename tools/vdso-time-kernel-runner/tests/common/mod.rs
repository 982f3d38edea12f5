//! Code that the test programs share. It is a copy of a few lines of dev/test-support, so that this
//! package needs nothing of the repository around it.

use std::env;
use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::process::{Command, Output};
use std::thread;

/// Records that the current test, or the rest of it, is not run, and why: in the file that
/// `VDSO_TIME_SKIPS` names or, if it names none, on standard output.
pub(crate) fn not_run_here(reason: impl Display) {
    let program = env::current_exe().unwrap_or_default();
    let program = program.file_name().unwrap_or_default().to_string_lossy();
    let program = program.split('-').next().unwrap_or_default();
    let thread = thread::current();
    let test = thread.name().unwrap_or("main");
    let reason = reason.to_string();
    let words: Vec<&str> = reason.split_whitespace().collect();
    let line = format!("not run here: {program}::{test}: {}\n", words.join(" "));
    match env::var_os("VDSO_TIME_SKIPS") {
        Some(path) if path != "-" => {
            let mut file = OpenOptions::new()
                .append(true)
                .create(true)
                .open(path)
                .unwrap();
            file.write_all(line.as_bytes()).unwrap();
        }
        // `println!` would show it only if the test fails.
        _ => io::stdout().write_all(line.as_bytes()).unwrap(),
    }
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
