//! The parts of the program `vdso-time-kernel-runner` and of the first process of its guests. The
//! program and its variables are the interface; these functions can change.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]
#![allow(
    missing_docs,
    clippy::missing_errors_doc,
    clippy::must_use_candidate,
    reason = "only the program uses the library"
)]

#[cfg(feature = "host")]
mod cache;
#[cfg(feature = "host")]
mod debian;
#[cfg(feature = "host")]
pub mod machine;
pub mod protocol;
#[cfg(feature = "host")]
pub mod runner;
#[cfg(feature = "host")]
pub mod setup;
#[cfg(feature = "host")]
mod sigchld;
#[cfg(feature = "host")]
mod targets;
#[cfg(feature = "host")]
pub mod toolchain;
#[cfg(feature = "host")]
mod tools;
#[cfg(feature = "host")]
mod workspace;

#[cfg(feature = "host")]
use std::env;
#[cfg(feature = "host")]
use std::os::unix::process::CommandExt as _;
#[cfg(feature = "host")]
use std::process::{Command, ExitCode};

#[cfg(feature = "host")]
use anyhow::{Context as _, Result};
#[cfg(feature = "host")]
use xshell::Cmd;

#[cfg(feature = "host")]
use debian::NotFetched;

/// The variables, for the help.
pub const ENVIRONMENT: &str = "Environment:
  VDSO_TIME_GUEST_TIMEOUT  the seconds that a program may run in QEMU, instead of 120
  VDSO_TIME_GUEST_MEMORY   the minimum memory of a guest in MiB, instead of 512
  VDSO_TIME_DEBIAN_MIRROR  the URI of a Debian mirror, instead of the one in apt's sources
  XDG_CACHE_HOME           the directory of the cache `vdso-time`, instead of ~/.cache

The status is 75 if the mirror cannot provide what the command needs: try again later.";

/// EX_TEMPFAIL of sysexits.h: the mirror cannot provide what the command needs.
#[cfg(feature = "host")]
pub(crate) const NOT_FETCHED: u8 = 75;

/// Returns the file name of this program, for messages and for cargo's setting `runner`.
#[cfg(feature = "host")]
pub(crate) fn name() -> String {
    let program = env::current_exe().unwrap_or_default();
    let name = program.file_name().unwrap_or_default();
    let name = name.to_string_lossy();
    // The kernel adds ` (deleted)` if the program's file was replaced while the program runs.
    name.trim_end_matches(" (deleted)").to_owned()
}

/// Prints a message about the current step.
#[cfg(feature = "host")]
pub(crate) fn step(message: &str) {
    eprintln!("{}: {message}", name());
}

/// Runs a command of this program, and prints why it failed. Returns its status.
#[cfg(feature = "host")]
pub fn run(command: impl FnOnce() -> Result<ExitCode>) -> ExitCode {
    let result = match sigchld::catch() {
        Ok(()) => command(),
        Err(error) => Err(error.into()),
    };
    let error = match result {
        Ok(code) => return code,
        Err(error) => error,
    };
    if error.is::<NotFetched>() {
        let words: Vec<String> = env::args().skip(1).collect();
        step(&format!("{} did not run: {error:#}", words.join(" ")));
        return ExitCode::from(NOT_FETCHED);
    }
    step(&format!("{error:#}"));
    ExitCode::FAILURE
}

/// Replaces this process with the command, so that a signal to this process ends the command.
#[cfg(feature = "host")]
pub fn become_command(command: Cmd<'_>) -> Result<ExitCode> {
    let name = command.to_string();
    let error = Command::from(command).exec();
    Err(error).with_context(|| format!("cannot start {name}"))
}
