//! The parts of the program `vdso-time-kernel-runner`, for it and for this repository's
//! `cargo xtask`. The program and its variables are the interface; these functions can change.
#![cfg(target_os = "linux")]
#![allow(
    missing_docs,
    clippy::missing_errors_doc,
    clippy::must_use_candidate,
    reason = "only this repository uses the library"
)]

#[cfg(feature = "host")]
pub mod cache;
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
pub mod targets;
#[cfg(feature = "host")]
pub mod toolchain;
#[cfg(feature = "host")]
mod tools;
#[cfg(feature = "host")]
pub mod workspace;

#[cfg(feature = "host")]
pub use host::{ENVIRONMENT, become_command, name, step};

#[cfg(feature = "host")]
mod host {
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, ExitCode};

    use anyhow::{Context as _, Result};
    use xshell::Cmd;

    /// The variables, for the help.
    pub const ENVIRONMENT: &str = "Environment:
  VDSO_TIME_GUEST_TIMEOUT  the seconds that a program may run in QEMU, instead of 120
  VDSO_TIME_DEBIAN_MIRROR  the URI of a Debian mirror, instead of that in apt's sources
  XDG_CACHE_HOME           the folder of the cache `vdso-time`, instead of ~/.cache";

    /// The name of this program, with which cargo starts it too.
    pub fn name() -> String {
        let program = std::env::current_exe().unwrap_or_default();
        program.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Prints what is being done.
    pub fn step(message: &str) {
        eprintln!("{}: {message}", name());
    }

    /// Replaces this process, so that a signal to it ends the command.
    pub fn become_command(command: Cmd<'_>) -> Result<ExitCode> {
        let name = command.to_string();
        Err(Command::from(command).exec()).with_context(|| format!("cannot start {name}"))
    }
}
