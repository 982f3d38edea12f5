//! A program in a process group of its own, which ends when this process does, however that comes.

#![allow(unsafe_code, reason = "libc's functions for signals; std has none")]

use std::io;
use std::os::unix::process::{CommandExt as _, parent_id};
use std::process::{self, Child, Command, ExitStatus};
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How often to look whether a program has ended.
const LOOK: Duration = Duration::from_millis(10);

/// The group that the handler of signals ends, or 0.
static GROUP: AtomicI32 = AtomicI32::new(0);

/// The program and the processes that it starts. None outlives this.
pub(crate) struct Group {
    pub(crate) leader: Child,
}

impl Group {
    pub(crate) fn start(command: &mut Command) -> Result<Self, String> {
        let this = process::id();
        let end_with_this = move || {
            die_with_parent(libc::SIGKILL);
            // This process may have ended before it was asked for.
            if parent_id() == this { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
        };
        // SAFETY: the child, which has one thread, makes two system calls and allocates nothing.
        unsafe { command.pre_exec(end_with_this) };
        let started = command.process_group(0).spawn();
        let leader =
            started.map_err(|error| format!("{}: {error}", command.get_program().to_string_lossy()))?;
        GROUP.store(leader.id() as i32, Ordering::Relaxed);
        Ok(Self { leader })
    }

    /// Waits for the program to end; `None` if it has not after that time.
    pub(crate) fn wait(&mut self, limit: Duration) -> Result<Option<ExitStatus>, String> {
        let deadline = Instant::now() + limit;
        loop {
            let ended = self.leader.try_wait().map_err(|error| error.to_string())?;
            if ended.is_some() || Instant::now() >= deadline {
                return Ok(ended);
            }
            thread::sleep(LOOK);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        kill_group(GROUP.swap(0, Ordering::Relaxed));
        // It may have ended by itself.
        let _ = self.leader.wait();
    }
}

/// Has this process end when its parent does, and the group with this process.
pub(crate) fn end_with_parent() {
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGTERM] {
        let handler = end as extern "C" fn(i32) as usize;
        // SAFETY: the handler makes system calls alone and does not return.
        let before = unsafe { libc::signal(signal, handler) };
        if before == libc::SIG_IGN {
            // As nohup(1) has it.
            // SAFETY: it is what was there.
            unsafe { libc::signal(signal, before) };
        }
    }
    die_with_parent(libc::SIGTERM);
}

extern "C" fn end(signal: i32) {
    kill_group(GROUP.load(Ordering::Relaxed));
    // SAFETY: _exit(2) takes any number and runs nothing of this process.
    unsafe { libc::_exit(128 + signal) };
}

fn kill_group(group: i32) {
    if group > 0 {
        // SAFETY: the number is that of a group that this process made; it has no other effect here.
        unsafe { libc::kill(-group, libc::SIGKILL) };
    }
}

fn die_with_parent(signal: i32) {
    // SAFETY: PR_SET_PDEATHSIG takes the number of a signal, and has no pointer.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal) };
}
