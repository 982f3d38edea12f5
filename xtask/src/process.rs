//! Running other programs, with errors that tell which one failed and what it said.

use std::fmt::Write as _;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Output, Stdio};

/// Says on stderr what is being done; each step is one line.
pub(crate) fn step(message: &str) {
    eprintln!("xtask: {message}");
}

/// The command as a person would type it.
fn line(command: &Command) -> String {
    let mut line = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    line
}

fn not_started(command: &Command, error: &io::Error) -> String {
    format!("`{}` could not be started: {error}", line(command))
}

/// Runs the command unseen, whatever its exit status.
pub(crate) fn output(command: &mut Command) -> Result<Output, String> {
    command.output().map_err(|error| not_started(command, &error))
}

/// Runs the command unseen and gives its standard output; all it said is in the error.
pub(crate) fn stdout(command: &mut Command) -> Result<String, String> {
    let output = output(command)?;
    accepted(command, &output)
}

/// Gives the standard output of a command whose messages the user sees.
pub(crate) fn stdout_with_messages(command: &mut Command) -> Result<String, String> {
    let output = output(command.stderr(Stdio::inherit()))?;
    accepted(command, &output)
}

fn accepted(command: &Command, output: &Output) -> Result<String, String> {
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(stdout);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let mut message = format!("`{}` failed ({})", line(command), output.status);
    for text in stdout.lines().chain(stderr.lines()) {
        let _ = write!(message, "\n  {text}"); // a String takes every write
    }
    Err(message)
}

/// Runs the command in the user's sight, all that it says on standard error.
pub(crate) fn shown(command: &mut Command) -> Result<(), String> {
    let stderr = io::stderr().as_fd().try_clone_to_owned().map_err(|error| error.to_string())?;
    let status = command.stdout(stderr).status().map_err(|error| not_started(command, &error))?;
    if status.success() { Ok(()) } else { Err(format!("`{}` failed ({status})", line(command))) }
}

/// Runs the command in the user's sight and hands its exit code on.
pub(crate) fn pass_through(command: &mut Command) -> Result<ExitCode, String> {
    let status = command.status().map_err(|error| not_started(command, &error))?;
    // Ended by a signal, it has no code: that is a failure too.
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(1)))
}

/// Becomes the command, so that whoever ends this process ends the command. Returns if it cannot be
/// started.
pub(crate) fn become_command(command: &mut Command) -> String {
    let error = command.exec();
    not_started(command, &error)
}
