//! Code that the unit tests and the test program share. It is a copy of a part of dev/test-support,
//! so that this package needs nothing from the repository around it.

#![allow(dead_code, reason = "each of the two uses a part")]

pub(crate) mod child;

use std::env;
use std::fmt::Display;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;

/// The environment variable that names the file to which [`not_run_here`] appends its lines. If it
/// is not set, or is `-`, the lines go to standard output.
const SKIPS: &str = "VDSO_TIME_SKIPS";

/// Records that the current test, or the rest of it, does not run on this machine, and why.
pub(crate) fn not_run_here(why: impl Display) {
    let why = why.to_string();
    let words: Vec<&str> = why.split_whitespace().collect();
    let line = format!("not run here: {}: {}\n", test(), words.join(" "));
    match env::var_os(SKIPS) {
        Some(path) if path != "-" => {
            let file = OpenOptions::new().append(true).create(true).open(&path);
            let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
            written.unwrap_or_else(|error| panic!("{SKIPS}: {error}"));
        }
        // `println!` cannot be used: libtest hides the output of a test that passes.
        _ => io::stdout().write_all(line.as_bytes()).unwrap(),
    }
}

/// Returns the name of the current test, preceded by the name of its program. libtest names the
/// thread of a test after the test.
fn test() -> String {
    let program = this_program();
    let stem = program.file_stem().unwrap_or_default().to_string_lossy();
    // cargo appends a hash.
    let program = stem.rsplit_once('-').map_or(&*stem, |(name, _)| name);
    let thread = thread::current();
    let test = thread.name().unwrap_or("unnamed thread");
    format!("{program}::{test}")
}

/// Returns whether /proc is mounted. If it is not, records the test as not run.
pub(crate) fn has_proc() -> bool {
    match fs::metadata("/proc/self") {
        Ok(_) => true,
        Err(error) => {
            not_run_here(format!("/proc is not mounted: /proc/self: {error}"));
            false
        }
    }
}

/// Returns whether a program succeeds with these arguments. If it does not, records the test as not
/// run.
pub(crate) fn has_tool(tool: &str, arguments: &[&str]) -> bool {
    let why = match Command::new(tool).args(arguments).output() {
        Ok(output) if output.status.success() => return true,
        Ok(Output { status, stderr, .. }) => {
            let said = String::from_utf8_lossy(&stderr);
            format!("{tool} does not work: {status}: {said}")
        }
        Err(error) if error.kind() == ErrorKind::NotFound => format!("{tool} is not installed"),
        Err(error) => format!("{tool}: {error}"),
    };
    not_run_here(why);
    false
}

/// Returns the path of this program. Without /proc, it is the name with which the program was
/// started.
fn this_program() -> PathBuf {
    env::current_exe().unwrap_or_else(|_| env::args_os().next().unwrap_or_default().into())
}

/// Returns the directory `tmp` of cargo's target directory. It is derived from the path of this
/// program, because unit tests have no `CARGO_TARGET_TMPDIR`.
pub(crate) fn target_tmpdir() -> PathBuf {
    let program = this_program();
    let target = program.ancestors().nth(3).unwrap_or(Path::new("."));
    let directory = target.join("tmp");
    let _ = fs::create_dir_all(&directory);
    directory
}
