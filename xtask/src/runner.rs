//! `vdso-time-kernel-runner`, which these tasks start as a program.

use std::env;
use std::fmt;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::OnceLock;

use anyhow::{Context as _, Result, bail};
use xshell::Shell;

use crate::workspace;

const NAME: &str = "vdso-time-kernel-runner";

/// The status of a command for which the mirror cannot provide what is needed.
pub(crate) const NOT_FETCHED: u8 = 75;

/// The error of such a command. The runner has printed the reason.
#[derive(Debug)]
pub(crate) struct NotFetched;

impl fmt::Display for NotFetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the mirror cannot provide what it needs")
    }
}

impl std::error::Error for NotFetched {}

/// Returns the path of the runner, which stands beside this program: cargo builds both, or CI
/// installs both.
pub(crate) fn path() -> Result<PathBuf> {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    if let Some(path) = PATH.get() {
        return Ok(path.clone());
    }
    // Set if cargo runs this program.
    if env::var_os("CARGO").is_some() {
        let sh = Shell::new()?;
        let build = workspace::cargo(&sh).args(["build", "--quiet", "--package", NAME]);
        let manifest = workspace::root().join("Cargo.toml");
        build.arg("--manifest-path").arg(manifest).run()?;
    }
    let path = env::current_exe()?.with_file_name(NAME);
    Ok(PATH.get_or_init(|| path).clone())
}

/// Returns a command of the runner.
pub(crate) fn command(name: &str) -> Result<Command> {
    let mut command = Command::new(path()?);
    command.arg(name);
    Ok(command)
}

/// Returns cargo for a machine, with the variables that the tests of this repository need there.
pub(crate) fn on(machine: &str) -> Result<Command> {
    let mut command = command("on")?;
    command.arg(machine);
    set_environment(&mut command, machine);
    Ok(command)
}

/// Sets the variables of the tests on a machine.
pub(crate) fn set_environment(command: &mut Command, machine: &str) {
    // The tests print why they do not run, because a guest cannot append to a file of this machine.
    command.env("VDSO_TIME_SKIPS", "-");
    if !is_guest(machine) {
        return;
    }
    command.env("VDSO_TIME_TEST_MAY_CHANGE_CLOCK", "1");
    if ["x86_64", "i686"].contains(&arch(machine)) {
        // QEMU's CPUs have no invariant TSC, and the tests need one.
        let inherited = env::var("RUSTFLAGS").unwrap_or_default();
        let flags = format!("{inherited} --cfg vdso_time_assume_invariant");
        command.env("RUSTFLAGS", flags);
    }
}

/// Returns the name of a machine's architecture.
pub(crate) fn arch(machine: &str) -> &str {
    machine.split('@').next().unwrap_or(machine)
}

/// Returns whether this machine's kernel and processor run the programs.
pub(crate) fn is_native(machine: &str) -> bool {
    machine.ends_with("@native") || machine == env::consts::ARCH
}

/// Returns whether a machine has a kernel of its own.
fn is_guest(machine: &str) -> bool {
    match machine.split_once('@') {
        Some((_, runner)) => runner != "native" && !runner.starts_with("qemu-"),
        None => false,
    }
}

/// Runs a command and returns what it prints on standard output.
pub(crate) fn read(command: &mut Command) -> Result<String> {
    let output = command.stderr(Stdio::inherit()).output()?;
    check(command, output.status)?;
    Ok(String::from_utf8(output.stdout)?)
}

/// Runs a command.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status()?;
    check(command, status)
}

/// Returns the error that a status stands for.
pub(crate) fn check(command: &Command, status: ExitStatus) -> Result<()> {
    if status.success() {
        return Ok(());
    }
    if status.code() == Some(NOT_FETCHED.into()) {
        return Err(NotFetched.into());
    }
    bail!("{command:?}: {status}");
}

/// Replaces this process, so that a signal to it ends the command.
pub(crate) fn become_command(mut command: Command) -> Result<ExitCode> {
    Err(command.exec()).with_context(|| format!("cannot start {command:?}"))
}

#[cfg(test)]
mod tests {
    use super::{arch, is_guest};

    #[test]
    fn only_a_machine_with_a_kernel_of_its_own_is_a_guest() {
        for machine in ["x86_64@7", "armv7@arm64-6.1", "i686@6.1+2040"] {
            assert!(is_guest(machine), "{machine}");
        }
        for machine in ["x86_64", "i686@native", "armv7", "armv7@qemu-10"] {
            assert!(!is_guest(machine), "{machine}");
        }
        assert_eq!(arch("armv7@arm64-6.1"), "armv7");
    }
}
