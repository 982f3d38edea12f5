//! Other processes, for what can be done once in a process: this binary again, and forks.

use std::env;
use std::ffi::c_int;
use std::io::{self, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

use super::not_run;

const TASK: &str = "VDSO_TIME_TEST_TASK";

/// Does `work` in processes in which nothing was done before, one after the other: in this binary, run again for this
/// test (its full name) alone. Where the kernel cannot run it, under an emulator, in forks: in a file whose tests do
/// nothing in their own process those are as fresh.
#[track_caller]
pub(crate) fn fresh(test: &str, task: &str, rounds: usize, work: impl Fn()) {
    match env::var(TASK) {
        Ok(told) if told == task => work(),
        Ok(_) => {}
        Err(_) if runs_alone(test) => (0..rounds).for_each(|_| again(test, task)),
        Err(_) => {
            println!("{task}: in forks, for the kernel cannot run this binary");
            (0..rounds).for_each(|_| forked(&work));
        }
    }
}

/// The file of this program: what /proc says, or, where that is not mounted, what cargo called it
/// by.
pub(crate) fn this_program() -> PathBuf {
    env::current_exe().unwrap_or_else(|_| env::args_os().next().unwrap_or_default().into())
}

/// This binary, to run a test alone.
fn this_binary(test: &str) -> Command {
    let mut command = Command::new(this_program());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    command
}

/// Whether the kernel can run this binary.
#[track_caller]
fn runs_alone(test: &str) -> bool {
    let Ok(output) = this_binary(test).arg("--list").output() else { return false };
    let listed = String::from_utf8_lossy(&output.stdout).contains(&format!("{test}: test"));
    assert!(listed || !output.status.success(), "there is no test {test}");
    listed
}

#[track_caller]
fn again(test: &str, task: &str) {
    let output = this_binary(test).env(TASK, task).env(not_run::RECORD, &*not_run::FILE).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let passed = output.status.success() && out.contains("1 passed");
    assert!(passed, "{test}, told to {task}: {}\n{out}\n{err}", output.status);
}

/// Does `work` in a forked child, and fails if that does.
#[track_caller]
pub(crate) fn forked(work: impl FnOnce()) {
    // The child has another parent, by which it would name another record.
    LazyLock::force(&not_run::FILE);
    // SAFETY: the child does no more than `work` and leaves; the locks of libc are good in it.
    match unsafe { libc::fork() } {
        -1 => panic!("fork: {}", io::Error::last_os_error()),
        0 => {
            let status = catch_unwind(AssertUnwindSafe(work)).map_or_else(|panic| tell(&*panic), |()| 0);
            // SAFETY: _exit(2) takes any status.
            unsafe { libc::_exit(status) }
        }
        child => assert_eq!(wait(child), 0, "the forked child failed"),
    }
}

/// How a forked child ends that does `work` and leaves by exit(2) of its one thread, which strict seccomp allows: its wait
/// status.
#[track_caller]
pub(crate) fn end_of(work: impl FnOnce()) -> c_int {
    LazyLock::force(&not_run::FILE); // as in `forked`
    // SAFETY: the child does no more than `work` and leaves.
    match unsafe { libc::fork() } {
        -1 => panic!("fork: {}", io::Error::last_os_error()),
        0 => {
            let status = catch_unwind(AssertUnwindSafe(work)).map_or_else(|panic| tell(&*panic), |()| 0);
            // SAFETY: it takes any status.
            unsafe { libc::syscall(libc::SYS_exit, status) };
            unreachable!()
        }
        child => wait(child),
    }
}

#[track_caller]
fn wait(child: libc::pid_t) -> c_int {
    let mut status = 0;
    // SAFETY: waitpid(2) writes the status there.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(waited, child, "waitpid: {}", io::Error::last_os_error());
    status
}

/// Says why a child panicked, past the capture of the test's output, which ends with the child.
fn tell(panic: &(dyn std::any::Any + Send)) -> i32 {
    let message =
        panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref().copied());
    let _ = writeln!(io::stderr(), "forked child: {}", message.unwrap_or("panic"));
    101
}
