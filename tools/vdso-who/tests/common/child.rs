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

/// The time after which a child is killed. Even in the slowest emulator, a child takes less.
const LIMIT: Duration = Duration::from_secs(120);

/// The exit status of a child whose work returned true.
pub(crate) const SUCCESS: Option<i32> = Some(0);

/// Does `work` in a forked child, and fails if `work` fails there.
#[track_caller]
pub(crate) fn forked(work: impl FnOnce()) {
    let child = fork(|| {
        work();
        true
    });
    assert_eq!(wait(child), SUCCESS, "the forked child failed");
}

/// Forks a child that does `work` and ends.
///
/// The child ends with exit_group(2), not with exit(2). In QEMU's user mode, exit(2) takes a lock
/// of the emulator, and so does the start of a thread. If another thread of the parent was starting
/// a thread during the fork, the lock stays locked permanently in the child.
#[track_caller]
pub(crate) fn fork(work: impl FnOnce() -> bool) -> Pid {
    // SAFETY: the child does no more than `work` and leaves; libc keeps its locks usable in it.
    match unsafe { nix::unistd::fork() }.unwrap_or_else(|error| panic!("fork: {error}")) {
        ForkResult::Parent { child } => child,
        ForkResult::Child => {
            // No other process waits for this one, so it is killed when the thread that forked it
            // ends.
            let _ = set_pdeathsig(Signal::SIGKILL);
            leave(i32::from(!or_leave(work)))
        }
    }
}

/// Does `work`. If that panics, prints the message and ends this process. libtest has captured the
/// message already, but what it captures in the child is lost.
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

/// Waits until the main thread of a child has ended. Waits for at most 5 s, because in an emulator
/// it may never end.
pub(crate) fn wait_for_main_thread(child: Pid) {
    for _ in 0..1000 {
        thread::sleep(Duration::from_millis(5));
        let vector = fs::read(format!("/proc/{child}/auxv"));
        if vector.unwrap_or_default().is_empty() {
            return;
        }
    }
}

/// Waits for a child. Returns its exit status, or `None` if a signal ended it. A child that has not
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
