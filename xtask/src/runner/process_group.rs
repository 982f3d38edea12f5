//! A program in a process group of its own, which ends when this process does, however that happens.

#![allow(unsafe_code, reason = "std has no safe way to run code between fork and exec")]

use std::io;
use std::os::unix::process::{CommandExt as _, parent_id};
use std::process::{self, Child, Command, ExitStatus};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use fs_err as fs;
use rustix::process::{Pid, Signal, kill_process_group, set_parent_process_death_signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The groups to kill when a signal ends this process.
static GROUPS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// A program and the processes that it started. Dropping it kills them.
pub(crate) struct ProcessGroup {
    pub(crate) leader: Child,
}

impl ProcessGroup {
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let this = process::id();
        let end_with_this = move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // This process may have ended before the call.
            if parent_id() == this { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
        };
        // SAFETY: the closure, above, makes two system calls and allocates nothing, so it may run
        // in the child of a process with several threads.
        unsafe { command.pre_exec(end_with_this) };
        let started = command.process_group(0).spawn();
        let leader =
            started.with_context(|| format!("cannot start {}", command.get_program().to_string_lossy()))?;
        groups().push(Pid::from_child(&leader));
        Ok(Self { leader })
    }

    /// Waits for the program; `None` if it still runs after that time.
    pub(crate) fn wait(&mut self, limit: Duration) -> Result<Option<ExitStatus>> {
        let deadline = Instant::now() + limit;
        loop {
            let status = self.leader.try_wait()?;
            if status.is_some() || Instant::now() >= deadline {
                return Ok(status);
            }
            thread::sleep(POLL_INTERVAL);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        let group = Pid::from_child(&self.leader);
        groups().retain(|other| *other != group);
        // The group may be empty, and the leader waited for.
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.leader.wait();
    }
}

fn groups() -> impl std::ops::DerefMut<Target = Vec<Pid>> {
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends this process SIGTERM when its parent ends.
pub(crate) fn end_with_parent() -> Result<()> {
    Ok(set_parent_process_death_signal(Some(Signal::TERM))?)
}

/// Makes a signal that ends this process end the groups too. A signal that this process was started
/// to ignore, as nohup(1) does, stays ignored.
pub(crate) fn end_groups_at_signals() -> Result<()> {
    let status = fs::read_to_string("/proc/self/status")?;
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = u64::from_str_radix(mask.unwrap_or("0").trim(), 16)?;
    let handled = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|signal| ignored & (1 << (signal - 1)) == 0);
    let mut signals = Signals::new(handled)?;
    thread::spawn(move || {
        let Some(signal) = signals.forever().next() else { return };
        for group in groups().iter() {
            let _ = kill_process_group(*group, Signal::KILL);
        }
        process::exit(128 + signal);
    });
    Ok(())
}
