//! Other processes, for what can be done once in a process: forks.

use std::env;
use std::ffi::c_int;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::Command;
use std::ptr;
use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

use super::not_run;

/// No child takes so long, in the slowest emulator.
pub const LIMIT: Duration = Duration::from_secs(120);

/// Does `work` in forked children, one after the other. In a program whose tests make every call in a
/// child, a call there is the first one.
#[track_caller]
pub fn fresh(rounds: usize, work: impl Fn()) {
    (0..rounds).for_each(|_| forked(&work));
}

/// The file of this program: what /proc says, or, where that is not mounted, what cargo called it
/// by.
pub fn this_program() -> PathBuf {
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
pub fn runs_alone(test: &str) -> bool {
    let Ok(output) = this_binary(test).arg("--list").output() else { return false };
    let listed = String::from_utf8_lossy(&output.stdout).contains(&format!("{test}: test"));
    assert!(listed || !output.status.success(), "there is no test {test}");
    listed
}

/// Does `work` in a forked child, and fails if that does.
#[track_caller]
pub fn forked(work: impl FnOnce()) {
    assert_eq!(end_of(work), 0, "the forked child failed");
}

/// How a forked child ends that does `work` and leaves: its wait status.
#[track_caller]
pub fn end_of(work: impl FnOnce()) -> c_int {
    wait(fork(work), LIMIT)
}

/// Makes a child that does `work` and leaves.
///
/// It leaves by exit_group(2). In QEMU's user mode exit(2) and the start of a thread take a lock of
/// the emulator. A child finds that locked for ever if another thread of its parent was starting a
/// thread during the fork.
#[track_caller]
pub fn fork(work: impl FnOnce()) -> libc::pid_t {
    // The child has another parent, by which it would name another record.
    LazyLock::force(&not_run::FILE);
    // SAFETY: the child does no more than `work` and leaves; the locks of libc are good in it.
    match unsafe { libc::fork() } {
        -1 => panic!("fork: {}", io::Error::last_os_error()),
        0 => {
            end_with_parent();
            let status = catch_unwind(AssertUnwindSafe(work)).map_or_else(|panic| tell(&*panic), |()| 0);
            // SAFETY: _exit(2) takes any status.
            unsafe { libc::_exit(status) }
        }
        child => child,
    }
}

/// Kills this process when the thread that made it ends: nobody but that thread knows of it.
pub fn end_with_parent() {
    // SAFETY: the two arguments are numbers.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}

/// The wait status of a child. One that has not ended after `limit` is killed, and the test fails.
#[track_caller]
pub fn wait(child: libc::pid_t, limit: Duration) -> c_int {
    let start = Instant::now();
    let mut pause = Duration::from_micros(50);
    loop {
        let mut status = 0;
        // SAFETY: waitpid(2) writes the status there.
        let waited = unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) };
        if waited != 0 {
            assert_eq!(waited, child, "waitpid: {}", io::Error::last_os_error());
            return status;
        }
        if start.elapsed() > limit {
            kill(child);
            // SAFETY: waitpid(2) writes no status to null.
            unsafe { libc::waitpid(child, ptr::null_mut(), 0) };
            panic!("the child was killed, for it had not ended after {limit:?}");
        }
        thread::sleep(pause);
        pause = (2 * pause).min(Duration::from_millis(10));
    }
}

fn kill(child: libc::pid_t) {
    // SAFETY: the two arguments are numbers.
    unsafe { libc::kill(child, libc::SIGKILL) };
}

/// Says why a child panicked, past the capture of the test's output, which ends with the child.
fn tell(panic: &(dyn std::any::Any + Send)) -> i32 {
    let message =
        panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref().copied());
    let line = format!("forked child: {}\n", message.unwrap_or("panic"));
    // Another thread may have held the lock of std's standard error during the fork.
    // SAFETY: the kernel reads the bytes of the line.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
    101
}
