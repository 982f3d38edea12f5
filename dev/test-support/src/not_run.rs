//! Tests that are not run on this machine say why.

use std::env;
use std::fmt::Display;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::Need;

/// Says why a test, or the rest of it, is not run. Fails if `VDSO_TIME_TEST_REQUIRES` has what is
/// missing, so that CI skips nothing.
#[track_caller]
pub fn not_run_here(missing: Need, why: impl Display) {
    not_run(&why);
    assert!(
        !missing.is_required(),
        "{} is required: {why}",
        missing.word()
    );
}

/// Says why a test, or the rest of it, is not run, where nothing that could be installed or allowed
/// would change that.
pub fn not_run(why: impl Display) {
    let why = why
        .to_string()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    // Not by `println!`: the output of a test that passes is not shown, and in a forked child
    // another thread may have held the lock.
    let line = format!("not run here: {why}\n");
    let _ = nix::unistd::write(io::stdout(), line.as_bytes());
}

/// Returns whether /proc is mounted; says so if it is not.
#[track_caller]
pub fn has_proc() -> bool {
    let found = fs::metadata("/proc/self");
    found
        .map_err(|error| {
            not_run_here(
                Need::Proc,
                format!("/proc is not mounted: /proc/self: {error}"),
            )
        })
        .is_ok()
}

/// Returns whether a program works, by arguments with which it must succeed; says what is missing
/// if it does not.
#[track_caller]
pub fn has_tool(need: Need, arguments: &[&str]) -> bool {
    if need == Need::Valgrind && !has_proc() {
        return false;
    }
    let tool = need.word();
    let why = match Command::new(tool).args(arguments).output() {
        Ok(output) if output.status.success() => return true,
        Ok(Output { status, stderr, .. }) => {
            format!(
                "{tool} does not work: {status}: {}",
                String::from_utf8_lossy(&stderr)
            )
        }
        Err(error) if error.kind() == ErrorKind::NotFound => format!("{tool} is not installed"),
        Err(error) => format!("{tool}: {error}"),
    };
    not_run_here(need, why);
    false
}

/// Returns the file of this program, by /proc, or else by the name with which it was started.
pub fn this_program() -> PathBuf {
    env::current_exe().unwrap_or_else(|_| env::args_os().next().unwrap_or_default().into())
}

/// Returns the folder `tmp` of cargo's target folder, by the place of this test program in it.
pub fn target_tmpdir() -> PathBuf {
    let program = this_program();
    let target = program.ancestors().nth(3).unwrap_or(Path::new("."));
    let folder = target.join("tmp");
    let _ = fs::create_dir_all(&folder);
    folder
}
