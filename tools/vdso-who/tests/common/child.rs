//! Forked children.

#![allow(unsafe_code, reason = "a process is forked")]

use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid};

/// How long a child may take. The slowest emulator takes less.
const LIMIT: Duration = Duration::from_secs(120);

/// The exit status of a child whose work returned true.
pub(crate) const SUCCESS: Option<i32> = Some(0);

/// Does `work` in a forked child, and fails if that does.
#[track_caller]
pub(crate) fn forked(work: impl FnOnce()) {
    let child = fork(|| {
        work();
        true
    });
    assert_eq!(wait(child), SUCCESS, "the forked child failed");
}

/// Makes a child that does `work` and leaves.
///
/// It leaves by exit_group(2). In QEMU's user mode exit(2) and the start of a thread take a lock of
/// the emulator. A child finds it locked permanently if another thread of its parent was starting a
/// thread during the fork.
#[track_caller]
pub(crate) fn fork(work: impl FnOnce() -> bool) -> Pid {
    // SAFETY: the child does no more than `work` and leaves; libc keeps its locks usable in it.
    match unsafe { nix::unistd::fork() }.unwrap_or_else(|error| panic!("fork: {error}")) {
        ForkResult::Parent { child } => child,
        ForkResult::Child => {
            // No other process waits for this one, so it ends with the thread that made it.
            let _ = set_pdeathsig(Signal::SIGKILL);
            leave(i32::from(!or_leave(work)))
        }
    }
}

/// Does `work`, and ends this process if that panics. Prints the panic's message, because the
/// capture of the test's output ends with the child.
fn or_leave(work: impl FnOnce() -> bool) -> bool {
    let panic = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => return done,
        Err(panic) => panic,
    };
    let message = if let Some(message) = panic.downcast_ref::<String>() {
        message
    } else if let Some(message) = panic.downcast_ref::<&str>() {
        message
    } else {
        "panic"
    };
    // `eprintln` cannot be used: another thread may have held std's lock during the fork.
    let line = format!("forked child: {message}\n");
    let _ = nix::unistd::write(io::stderr(), line.as_bytes());
    leave(101)
}

/// Ends this process immediately.
pub(crate) fn leave(status: i32) -> ! {
    // SAFETY: _exit(2) takes any status.
    unsafe { libc::_exit(status) }
}

/// Ends this thread alone, even if it is the main thread.
pub(crate) fn leave_thread() -> ! {
    loop {
        // SAFETY: exit(2) takes any status.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
    }
}

/// Waits until the main thread of a child has left, for at most 5 s, because an emulator may keep
/// it.
pub(crate) fn wait_for_main_thread(child: Pid) {
    for _ in 0..1000 {
        thread::sleep(Duration::from_millis(5));
        let vector = fs::read(format!("/proc/{child}/auxv"));
        if vector.unwrap_or_default().is_empty() {
            return;
        }
    }
}

/// Waits for a child. Returns its exit status; `None` if a signal ended it. A child that has not
/// ended after [`LIMIT`] is killed, and the test fails.
#[track_caller]
pub(crate) fn wait(child: Pid) -> Option<i32> {
    let start = Instant::now();
    let mut pause = Duration::from_micros(50);
    loop {
        match waitpid(child, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(_, status)) => return Some(status),
            Ok(WaitStatus::Signaled(..)) => return None,
            Ok(WaitStatus::StillAlive) => {}
            other => panic!("waitpid: {other:?}"),
        }
        if start.elapsed() > LIMIT {
            let _ = kill(child, Signal::SIGKILL);
            let _ = waitpid(child, None);
            panic!("the child was killed because it had not ended after {LIMIT:?}");
        }
        thread::sleep(pause);
        pause = (2 * pause).min(Duration::from_millis(10));
    }
}
