//! Lets this program work if its caller ignores SIGCHLD.
//!
//! Some window managers and sandboxes start programs with SIGCHLD ignored. In such a program, the
//! kernel does not keep the status of a child that has ended, and each wait for a child fails with
//! ECHILD. So this process catches the signal. The programs that it starts with [`inherit`] ignore
//! the signal, as if the caller had started them directly.

use std::fs;
use std::io;
use std::process::Command;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::SIGCHLD;
use signal_hook::flag;

static IS_IGNORED: OnceLock<bool> = OnceLock::new();

/// Catches SIGCHLD if the caller ignores it. execve(2) resets a caught signal, so a program that
/// replaces this one with execve(2) begins with the default treatment of SIGCHLD.
pub(crate) fn catch() -> io::Result<()> {
    let is_ignored = is_ignored();
    if is_ignored {
        flag::register(SIGCHLD, Arc::new(AtomicBool::new(false)))?;
    }
    IS_IGNORED.get_or_init(|| is_ignored);
    Ok(())
}

/// Returns a command that starts a program with the caller's treatment of the signal.
pub(crate) fn inherit(program: &str) -> Command {
    if IS_IGNORED.get() != Some(&true) {
        return Command::new(program);
    }
    let mut command = Command::new("env");
    command.args(["--ignore-signal=CHLD", program]);
    command
}

/// Returns whether this process ignores SIGCHLD, according to the mask `SigIgn` of
/// /proc/self/status (proc(5)).
fn is_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = u64::from_str_radix(mask.unwrap_or_default().trim(), 16);
    mask.unwrap_or(0) & (1 << (SIGCHLD - 1)) != 0
}
