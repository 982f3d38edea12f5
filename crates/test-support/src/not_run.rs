//! Tests that are not run on this machine: each says why, and the last test program counts them.

use std::collections::BTreeSet;
use std::env;
use std::fmt::Display;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::process::parent_id;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;
use std::thread;

use crate::child::this_program;

/// The file to which the test programs that one `cargo test` starts append what they do not run.
/// cargo is the parent of each of them.
pub static FILE: LazyLock<PathBuf> =
    LazyLock::new(|| target_tmpdir().join(format!("not-run-{}", parent_id())));

/// Says why a test, or the rest of it, is not run. That is a failure if one of the words of
/// `VDSO_TIME_TEST_REQUIRES` is what is missing: so CI knows that nothing is skipped.
#[track_caller]
pub fn not_run_here(missing: &str, why: impl Display) {
    not_run(&why);
    assert!(!is_required(missing), "{missing} is required: {why}");
}

/// Says why a test, or the rest of it, is not run, if nothing could be installed or allowed that
/// would change that.
pub fn not_run(why: impl Display) {
    println!("not run here: {why}");
    let thread = thread::current();
    let why = why.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    let line = format!("{}: {}: {why}\n", program_name(), thread.name().unwrap_or("a thread"));
    // One write to a file that is appended to: lines of several threads do not mix. A kernel's
    // guest and a read-only checkout have no such folder; nothing is counted there.
    let file = OpenOptions::new().append(true).create(true).open(&*FILE);
    let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
}

/// Whether `VDSO_TIME_TEST_REQUIRES` names it.
pub fn is_required(what: &str) -> bool {
    env::var("VDSO_TIME_TEST_REQUIRES").is_ok_and(|required| required.split(' ').any(|word| word == what))
}

/// Whether /proc is mounted; says so if it is not.
#[track_caller]
pub fn has_proc() -> bool {
    let found = fs::metadata("/proc/self");
    found.map_err(|error| not_run_here("proc", format!("/proc is not mounted: /proc/self: {error}"))).is_ok()
}

/// Whether a tool works, by a command that must succeed; says what is missing if it does not.
#[track_caller]
pub fn has_tool(command: &[&str]) -> bool {
    let (tool, arguments) = command.split_first().expect("a tool");
    if *tool == "valgrind" && !has_proc() {
        return false;
    }
    let package = match *tool {
        "readelf" => "binutils",
        same => same,
    };
    let why = match Command::new(tool).args(arguments).output() {
        Ok(output) if output.status.success() => return true,
        Ok(Output { status, stderr, .. }) => {
            format!("{tool} does not work: {status}: {}", String::from_utf8_lossy(&stderr))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            format!("{tool} is not installed; on Debian: apt-get install {package}")
        }
        Err(error) => format!("{tool}: {error}"),
    };
    not_run_here(tool, why);
    false
}

/// What the test programs of this invocation did not run until now, each once. It is forgotten.
pub fn take() -> BTreeSet<String> {
    let lines = fs::read_to_string(&*FILE).unwrap_or_default();
    let _ = fs::remove_file(&*FILE);
    lines.lines().map(str::to_owned).collect()
}

/// The folder `tmp` of cargo's target folder, by the place of this test program in it.
pub fn target_tmpdir() -> PathBuf {
    let program = this_program();
    let target = program.ancestors().nth(3).unwrap_or(Path::new("."));
    let folder = target.join("tmp");
    let _ = fs::create_dir_all(&folder);
    folder
}

/// The name of this test program, without cargo's hash.
fn program_name() -> String {
    let program = this_program();
    let stem = program.file_stem().unwrap_or_default().to_string_lossy();
    stem.rsplit_once('-').map_or(&*stem, |(name, _)| name).to_owned()
}
