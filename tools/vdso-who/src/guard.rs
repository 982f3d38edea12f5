//! A tracer of all threads of a command. It swallows the SIGTRAP that a breakpoint causes where
//! the CPU does not say which breakpoint it was, so the command does not end by it.

#![allow(
    unsafe_code,
    reason = "nix fails for a stop by a realtime signal, and cannot listen"
)]

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::unistd::Pid;

use crate::{Result, ended, mapping, proc};

pub(crate) struct Guard {
    pub(crate) waiter: JoinHandle<Result<ExitStatus, Errno>>,
    /// A message says that the command executed a program, which runs when the message is dropped.
    /// None when nobody watches any more.
    pub(crate) executed: Option<Receiver<SyncSender<()>>>,
    /// The signals that were swallowed.
    pub(crate) swallowed: Arc<AtomicU64>,
}

impl Guard {
    /// Traces a process from now on.
    pub(crate) fn start(pid: Pid) -> Result<Self> {
        let (to_watch, executed) = sync_channel(0);
        let (to_start, started) = sync_channel(1);
        let swallowed = Arc::<AtomicU64>::default();
        let count = swallowed.clone();
        let waiter = thread::spawn(move || {
            let options = Options::PTRACE_O_TRACECLONE | Options::PTRACE_O_TRACEEXEC;
            let _ = to_start.send(ptrace::seize(pid, options));
            guard(pid, &count, &to_watch)
        });
        started.recv().map_err(ended)?.map_err(|error| {
            format!(
                "ptrace(2) is denied ({error}): run it outside of the container, or omit --exact"
            )
        })?;
        Ok(Self {
            waiter,
            executed: Some(executed),
            swallowed,
        })
    }
}

/// Waits for a process or, if it is -1, for any. Returns which it was, and its status.
pub(crate) fn wait_for(pid: i32, flags: i32) -> Result<(i32, ExitStatus), Errno> {
    loop {
        let mut status = 0;
        // SAFETY: the status is a place for the kernel to write to.
        match Errno::result(unsafe { libc::waitpid(pid, &raw mut status, flags) }) {
            Err(Errno::EINTR) => {}
            waited => return Ok((waited?, ExitStatus::from_raw(status))),
        }
    }
}

/// Lets each thread that stops continue, until the command ends.
fn guard(
    pid: Pid,
    swallowed: &AtomicU64,
    to_watch: &SyncSender<SyncSender<()>>,
) -> Result<ExitStatus, Errno> {
    loop {
        let (thread, status) = wait_for(-1, libc::__WALL | libc::__WNOTHREAD)?;
        let Some(mut signal) = status.stopped_signal() else {
            if thread == pid.as_raw() {
                return Ok(status);
            }
            continue;
        };
        let mut request = libc::PTRACE_CONT;
        match status.into_raw() >> 16 {
            0 if signal == libc::SIGTRAP && is_breakpoint(thread) => {
                swallowed.fetch_add(1, Ordering::Relaxed);
                signal = 0;
            }
            0 => {}
            event => {
                // The process is stopped, as by Ctrl-Z, until a SIGCONT.
                if event == libc::PTRACE_EVENT_STOP && signal != libc::SIGTRAP {
                    request = libc::PTRACE_LISTEN;
                }
                let (ready, is_ready) = sync_channel(0);
                if event == libc::PTRACE_EVENT_EXEC && to_watch.send(ready).is_ok() {
                    let _ = is_ready.recv();
                }
                signal = 0;
            }
        }
        let nothing = std::ptr::null_mut::<libc::c_void>();
        // SAFETY: these requests take no address, and a thread that ended is an error.
        unsafe {
            libc::ptrace(
                request,
                thread,
                nothing,
                signal as usize as *mut libc::c_void,
            )
        };
    }
}

/// Returns whether a thread stopped by a breakpoint of the vDSO that the CPU did not name.
fn is_breakpoint(thread: i32) -> bool {
    let Ok(info) = ptrace::getsiginfo(Pid::from_raw(thread)) else {
        return false;
    };
    // SAFETY: a SIGTRAP of the kernel has an address; that of a process has other bytes there.
    let address = unsafe { info.si_addr() } as u64;
    let maps = proc::text(thread as u32, "maps").unwrap_or_default();
    info.si_code == libc::TRAP_BRKPT
        && mapping::vdso(&maps).is_some_and(|vdso| vdso.contains(&address))
}
