//! The doctor as a process of its own: the test program again, whose test `crate::HOST` becomes the
//! doctor where it is told so.

#[path = "../../examples/doctor/main.rs"]
#[allow(dead_code, reason = "it is a program, whose main is not called here")]
pub(crate) mod program;

use std::env;
use std::fs::OpenOptions;
use std::os::fd::{IntoRawFd as _, RawFd};
use std::process::{Command, Output};

use test_support::child::this_program;
use test_support::{has_tool, not_run_here};

/// The arguments of the doctor that a test program is to become.
pub(crate) const ARGUMENTS: &str = "VDSO_TIME_TEST_DOCTOR";

/// What the doctor prints comes behind this.
pub(crate) const START: &str = "<<< doctor >>>\n";

/// Where the doctor's standard output goes, if not where that of the test program goes: a file, or
/// a broken pipe.
pub(crate) const OUTPUT: &str = "VDSO_TIME_TEST_DOCTOR_OUTPUT";
pub(crate) const BROKEN_PIPE: &str = "a broken pipe";

/// Becomes the doctor, if this program is to.
pub(crate) fn be_the_doctor_if_told() {
    if let Ok(arguments) = env::var(ARGUMENTS) {
        print!("\n{START}");
        if let Ok(output) = env::var(OUTPUT) {
            let output = match &*output {
                BROKEN_PIPE => broken_pipe(),
                file => OpenOptions::new().write(true).open(file).unwrap().into_raw_fd(),
            };
            // SAFETY: both are open, and the test program prints no more.
            assert_eq!(unsafe { libc::dup2(output, libc::STDOUT_FILENO) }, libc::STDOUT_FILENO);
        }
        let status = program::run(arguments.split_whitespace().map(Into::into));
        std::process::exit(status.into());
    }
}

/// The end of a pipe that takes what is written, and nobody has the other.
fn broken_pipe() -> RawFd {
    let mut ends = [0; 2];
    // SAFETY: pipe(2) writes both descriptors there.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    // SAFETY: nobody else has this one.
    assert_eq!(unsafe { libc::close(ends[0]) }, 0);
    ends[1]
}

/// The command that runs the doctor, behind the words of another that runs commands.
pub(crate) fn command(wrapper: &[&str], arguments: &str) -> Command {
    let mut words = wrapper.iter().map(Into::into).chain([this_program().into_os_string()]);
    let mut command = Command::new(words.next().unwrap());
    command.args(words).args(["--exact", crate::HOST, "--nocapture", "--test-threads=1"]);
    command.env(ARGUMENTS, arguments);
    command
}

/// What the doctor leaves with, and what it prints.
pub(crate) fn run(wrapper: &[&str], arguments: &str) -> Option<(i32, String, String)> {
    if !wrapper.is_empty() && !has_tool(&[wrapper, &["true"]].concat()) {
        return None;
    }
    let Output { status, stdout, stderr } = match command(wrapper, arguments).output() {
        Ok(output) => output,
        Err(error) => {
            not_run_here("exec", format!("this binary: {error}"));
            return None;
        }
    };
    let [out, err] = [stdout, stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    let code = status.code().unwrap_or_else(|| panic!("{arguments}: {status}\n{out}{err}"));
    match out.split_once(START) {
        Some((_, out)) => Some((code, out.to_owned(), err)),
        // A program of another architecture is not started by every kernel, nor by every tool.
        None if !out.contains("running 1 test") => {
            not_run_here(
                wrapper.first().copied().unwrap_or("exec"),
                format!("it does not start: status {code} {err}"),
            );
            None
        }
        None => panic!("{arguments}: {status}\n{out}{err}"),
    }
}
