//! Forked children, for what can be done once in a process.

use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid};
use vdso_time::Errno;

use crate::not_run::{self, not_run_here};

/// How long a child may take. The slowest emulator takes less.
pub const LIMIT: Duration = Duration::from_secs(120);

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Status(i32),
    Signal(Signal),
}

/// The child's work returned true.
pub const SUCCESS: End = End::Status(0);

/// Does `work` in a forked child, and fails if that does.
#[track_caller]
pub fn forked(work: impl FnOnce()) {
    let end = end_of(|| {
        work();
        true
    });
    assert_eq!(end, SUCCESS, "the forked child failed");
}

/// Does `work` in a forked child, and returns how the child ended: [`SUCCESS`] if `work` was true.
#[track_caller]
pub fn end_of(work: impl FnOnce() -> bool) -> End {
    wait(fork(work), LIMIT)
}

/// Makes a child that does `work` and leaves.
///
/// It leaves by exit_group(2). In QEMU's user mode exit(2) and the start of a thread take a lock of
/// the emulator. A child finds it locked permanently if another thread of its parent was starting a
/// thread during the fork.
#[track_caller]
pub fn fork(work: impl FnOnce() -> bool) -> Pid {
    // The child counts in this process's memory.
    not_run::count();
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
pub fn or_leave<T>(work: impl FnOnce() -> T) -> T {
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
pub fn leave(status: i32) -> ! {
    // SAFETY: _exit(2) takes any status.
    unsafe { libc::_exit(status) }
}

/// Ends this thread alone, even if it is the main thread.
pub fn leave_thread() -> ! {
    loop {
        // SAFETY: exit(2) takes any status.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
    }
}

/// Waits until the main thread of a child has left, for at most 5 s, because an emulator may keep
/// it.
pub fn wait_for_main_thread(child: Pid) {
    for _ in 0..1000 {
        thread::sleep(Duration::from_millis(5));
        let vector = fs::read(format!("/proc/{child}/auxv"));
        if vector.unwrap_or_default().is_empty() {
            return;
        }
    }
}

/// Sets the address of this process's vDSO; 0 means that there is none.
pub fn set_vdso(address: usize) {
    assert!(can_set_vdso(address), "the vDSO was looked up before");
}

/// Returns whether setting the address has an effect.
pub fn can_set_vdso(address: usize) -> bool {
    // SAFETY: tests give the address of their own image, or one where nothing can be called.
    let set = unsafe { vdso_time::vdso::set_address(std::ptr::with_exposed_provenance(address)) };
    assert!(matches!(set, Ok(()) | Err(Errno::EBUSY)), "{set:?}");
    set.is_ok()
}

/// Waits for a child. One that has not ended after `limit` is killed, and the test fails.
#[track_caller]
pub fn wait(child: Pid, limit: Duration) -> End {
    let start = Instant::now();
    let mut pause = Duration::from_micros(50);
    loop {
        match waitpid(child, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(_, status)) => return End::Status(status),
            Ok(WaitStatus::Signaled(_, signal, _)) => return End::Signal(signal),
            Ok(WaitStatus::StillAlive) => {}
            other => panic!("waitpid: {other:?}"),
        }
        if start.elapsed() > limit {
            let _ = kill(child, Signal::SIGKILL);
            let _ = waitpid(child, None);
            panic!("the child was killed because it had not ended after {limit:?}");
        }
        thread::sleep(pause);
        pause = (2 * pause).min(Duration::from_millis(10));
    }
}

/// Gives later children of this process another time namespace with these offsets, or records the
/// test as not run.
pub fn has_time_namespace(offsets: &str) -> bool {
    // `CLONE_NEWTIME` of include/uapi/linux/sched.h, which nix does not have.
    if let Err(error) = unshare(CloneFlags::from_bits_retain(0x80)) {
        not_run_here(format!("unshare: {error}"));
        return false;
    }
    let file = "/proc/self/timens_offsets";
    if let Err(error) = fs::write(file, offsets) {
        not_run_here(format!("{file}: {error}"));
        return false;
    }
    true
}
