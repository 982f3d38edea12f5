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

use crate::not_run::not_run_here;

/// How long a child may take. The slowest emulator takes less.
pub const LIMIT: Duration = Duration::from_secs(120);

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Status(i32),
    Signal(Signal),
}

/// The child's work returned true.
pub const WELL: End = End::Status(0);

/// Does `work` in a forked child, and fails if that does.
#[track_caller]
pub fn forked(work: impl FnOnce()) {
    let end = end_of(|| {
        work();
        true
    });
    assert_eq!(end, WELL, "the forked child failed");
}

/// Does `work` in a forked child, and returns how the child ended: [`WELL`] if `work` was true.
#[track_caller]
pub fn end_of(work: impl FnOnce() -> bool) -> End {
    wait(fork(work), LIMIT)
}

/// Makes a child that does `work` and leaves.
///
/// It leaves by exit_group(2). In QEMU's user mode exit(2) and the start of a thread take a lock of
/// the emulator. A child finds that locked for ever if another thread of its parent was starting a
/// thread during the fork.
#[track_caller]
pub fn fork(work: impl FnOnce() -> bool) -> Pid {
    // SAFETY: the child does no more than `work` and leaves; libc keeps its locks usable in it.
    match unsafe { nix::unistd::fork() }.unwrap_or_else(|error| panic!("fork: {error}")) {
        ForkResult::Parent { child } => child,
        ForkResult::Child => {
            // Nobody else waits for this process, so it ends with the thread that made it.
            let _ = set_pdeathsig(Signal::SIGKILL);
            leave(i32::from(!or_leave(work)))
        }
    }
}

/// Does `work`, and ends this process if that panics. Says why, because the capture of the test's
/// output ends with the child.
pub fn or_leave<T>(work: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let message = panic.downcast_ref::<String>().map(String::as_str);
        let message = message
            .or_else(|| panic.downcast_ref().copied())
            .unwrap_or("panic");
        // Not by `eprintln`: another thread may have held std's lock during the fork.
        let _ = nix::unistd::write(
            io::stderr(),
            format!("forked child: {message}\n").as_bytes(),
        );
        leave(101)
    })
}

/// Ends this process at once.
pub fn leave(status: i32) -> ! {
    // SAFETY: _exit(2) takes any status.
    unsafe { libc::_exit(status) }
}

/// Ends this thread alone, also if it is the main thread.
pub fn leave_thread() -> ! {
    loop {
        // SAFETY: exit(2) takes any status.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
    }
}

/// Waits until the main thread of a child has left, for at most 5 s, because an emulator may keep
/// it.
pub fn wait_for_main_thread(child: Pid) {
    let has_left =
        |_: &u32| !fs::read(format!("/proc/{child}/auxv")).is_ok_and(|it| !it.is_empty());
    (0..1000)
        .inspect(|_| thread::sleep(Duration::from_millis(5)))
        .find(has_left);
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

/// Gives later children of this process another time namespace with these offsets. Says so if that
/// is not possible.
pub fn has_time_namespace(offsets: &str) -> bool {
    // `CLONE_NEWTIME` of include/uapi/linux/sched.h, which nix does not have.
    let new =
        unshare(CloneFlags::from_bits_retain(0x80)).map_err(|error| format!("unshare: {error}"));
    let file = "/proc/self/timens_offsets";
    let set =
        new.and_then(|()| fs::write(file, offsets).map_err(|error| format!("{file}: {error}")));
    set.map_err(not_run_here).is_ok()
}
