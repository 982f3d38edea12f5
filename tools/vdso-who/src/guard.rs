//! A tracer of all threads of a command, for `--exact`, which sets hardware breakpoints on the
//! functions of the vDSO. On some machines, the CPU does not report which of these breakpoints was
//! hit. The breakpoint then raises SIGTRAP, which would end the command. So the tracer swallows
//! each SIGTRAP that comes from a breakpoint.

#![allow(
    unsafe_code,
    reason = "nix returns an error for a stop by a realtime signal, and has no PTRACE_LISTEN"
)]

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::unistd::Pid;

use crate::error::{Error, Result, ended};
use crate::{mapping, proc};

/// A thread that traces a command.
pub(crate) struct Guard {
    pub(crate) waiter: JoinHandle<Result<ExitStatus, Errno>>,
    /// Receives a message each time the command has executed a new program with execve(2). The
    /// tracer stops the new program at its start, and resumes it when the message is dropped. The
    /// receiver is None once the measurement is over.
    pub(crate) executed: Option<Receiver<SyncSender<()>>>,
    /// How many signals were swallowed.
    pub(crate) swallowed: Arc<AtomicU64>,
}

/// The state of a guard's thread.
struct Tracer {
    pid: Pid,
    swallowed: Arc<AtomicU64>,
    to_watch: SyncSender<SyncSender<()>>,
}

impl Guard {
    /// Traces a process from now on.
    pub(crate) fn start(pid: Pid) -> Result<Self> {
        let (to_watch, executed) = sync_channel(0);
        let (to_start, started) = sync_channel(1);
        let swallowed = Arc::<AtomicU64>::default();
        let tracer = Tracer {
            pid,
            swallowed: swallowed.clone(),
            to_watch,
        };
        let waiter = thread::spawn(move || {
            let options = Options::PTRACE_O_TRACECLONE | Options::PTRACE_O_TRACEEXEC;
            let _ = to_start.send(ptrace::seize(pid, options));
            tracer.run()
        });
        started.recv().map_err(ended)?.map_err(denied)?;
        Ok(Self {
            waiter,
            executed: Some(executed),
            swallowed,
        })
    }
}

fn denied(error: Errno) -> Error {
    format!("ptrace(2) is denied ({error}): run vdso-who outside of the container, or omit --exact")
        .into()
}

/// Waits for a child process or, if `pid` is -1, for any child or traced thread. Returns its id and
/// its status.
pub(crate) fn wait_for(pid: i32, flags: i32) -> Result<(i32, ExitStatus), Errno> {
    loop {
        let mut status = 0;
        // SAFETY: the kernel writes to the status, which lives until the call returns.
        let waited = unsafe { libc::waitpid(pid, &raw mut status, flags) };
        match Errno::result(waited) {
            Err(Errno::EINTR) => {}
            waited => return Ok((waited?, ExitStatus::from_raw(status))),
        }
    }
}

impl Tracer {
    /// Resumes each thread that stops, until the command ends. Returns the status of the command.
    fn run(&self) -> Result<ExitStatus, Errno> {
        loop {
            let (thread, status) = wait_for(-1, libc::__WALL | libc::__WNOTHREAD)?;
            if let Some(signal) = status.stopped_signal() {
                self.continue_thread(thread, signal, status.into_raw() >> 16);
            } else if thread == self.pid.as_raw() {
                return Ok(status);
            }
        }
    }

    /// Resumes a thread that has stopped because of a ptrace event or, if `event` is 0, because of
    /// a signal.
    fn continue_thread(&self, thread: i32, signal: i32, event: i32) {
        if event == 0 && signal == libc::SIGTRAP && is_breakpoint(thread) {
            self.swallowed.fetch_add(1, Ordering::Relaxed);
            request(libc::PTRACE_CONT, thread, 0);
        } else if event == 0 {
            request(libc::PTRACE_CONT, thread, signal);
        } else if event == libc::PTRACE_EVENT_STOP && signal != libc::SIGTRAP {
            // The process is stopped until a SIGCONT, for example after Ctrl-Z.
            request(libc::PTRACE_LISTEN, thread, 0);
        } else {
            if event == libc::PTRACE_EVENT_EXEC {
                self.wait_until_watched();
            }
            request(libc::PTRACE_CONT, thread, 0);
        }
    }

    /// Waits until the new program has its breakpoints, if the measurement still runs.
    fn wait_until_watched(&self) {
        let (ready, is_ready) = sync_channel(0);
        if self.to_watch.send(ready).is_ok() {
            let _ = is_ready.recv();
        }
    }
}

/// Makes a ptrace(2) request. It is not an error if the thread has ended.
fn request(request: libc::c_uint, thread: i32, signal: i32) {
    let address = ptr::null_mut::<libc::c_void>();
    let data = ptr::without_provenance_mut::<libc::c_void>(signal as usize);
    // SAFETY: these requests ignore the address, and take the number of a signal as data.
    unsafe { libc::ptrace(request, thread, address, data) };
}

/// Returns whether the SIGTRAP that stopped a thread is from a breakpoint in the vDSO.
fn is_breakpoint(thread: i32) -> bool {
    let Ok(info) = ptrace::getsiginfo(Pid::from_raw(thread)) else {
        return false;
    };
    if info.si_code != libc::TRAP_BRKPT {
        return false;
    }
    // SAFETY: PTRACE_GETSIGINFO has filled the whole structure, and any bytes are an address. The
    // process can forge this signal, which then only hides the signal from itself.
    let address = unsafe { info.si_addr() } as u64;
    let maps = proc::text(thread as u32, "maps").unwrap_or_default();
    match mapping::vdso(&maps) {
        Some(vdso) => vdso.contains(&address),
        None => false,
    }
}
