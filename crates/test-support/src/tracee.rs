//! A child that is executed one instruction at a time, and copied wherever it stands (x86_64).

use std::arch::global_asm;
use std::io;
use std::ops::Range;

use libc::user_regs_struct;
use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill, raise};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};

use crate::{child, maps};

// A tracee is sent here to be copied. Its registers say that the system call is clone(2).
global_asm!(".globl vdso_time_test_clone", "vdso_time_test_clone:", "syscall", "int3");

unsafe extern "C" {
    fn vdso_time_test_clone();
}

/// A child that is stopped; it ends with this.
pub struct Tracee {
    pid: Pid,
    pub vdso: Range<usize>,
}

impl Tracee {
    /// Forks a child that stops, and then does `work`. The error says what is missing here.
    pub fn fork(work: impl FnOnce()) -> io::Result<Self> {
        // SAFETY: the child does no more than `work` and leaves.
        let ForkResult::Parent { child: pid } = unsafe { fork() }? else {
            if ptrace::traceme().and_then(|()| raise(Signal::SIGSTOP)).is_ok() {
                work();
            }
            child::leave(1)
        };
        stopped(pid, Signal::SIGSTOP).map_err(|_| io::ErrorKind::Unsupported)?;
        let tracee = Self { pid, vdso: maps::named(&pid.to_string(), "[vdso]")? };
        ptrace::setoptions(pid, ptrace::Options::PTRACE_O_TRACEFORK | ptrace::Options::PTRACE_O_EXITKILL)?;
        Ok(tracee)
    }

    /// Executes one instruction, and returns the address of the next.
    pub fn step(&self) -> io::Result<usize> {
        ptrace::step(self.pid, None)?;
        self.stopped()
    }

    fn stopped(&self) -> io::Result<usize> {
        stopped(self.pid, Signal::SIGTRAP)?;
        Ok(ptrace::getregs(self.pid)?.rip as usize)
    }

    /// Forks it at its current instruction. The copy is a child of this process, and not traced. It
    /// goes on as after a fork there, or after its handler of a signal has returned.
    pub fn copy(&self, signal: Option<Signal>) -> io::Result<Pid> {
        let before = ptrace::getregs(self.pid)?;
        let clone = user_regs_struct {
            rip: vdso_time_test_clone as *const () as u64,
            rax: libc::SYS_clone as u64,
            orig_rax: u64::MAX,
            rdi: (libc::CLONE_PARENT | libc::SIGCHLD) as u64,
            rsi: 0,
            rdx: 0,
            r10: 0,
            r8: 0,
            ..before
        };
        ptrace::setregs(self.pid, clone)?;
        ptrace::cont(self.pid, None)?;
        match waitpid(self.pid, None)? {
            WaitStatus::PtraceEvent(_, _, libc::PTRACE_EVENT_FORK) => {}
            other => return Err(io::Error::other(format!("no fork: {other:?}"))),
        }
        let copy = Pid::from_raw(ptrace::getevent(self.pid)? as i32);
        ptrace::cont(self.pid, None)?;
        self.stopped()?;
        // Or a system call that was interrupted would be made again.
        let after = user_regs_struct { orig_rax: u64::MAX, ..before };
        ptrace::setregs(self.pid, after)?;

        stopped(copy, Signal::SIGSTOP)?;
        ptrace::setregs(copy, after)?;
        ptrace::detach(copy, signal)?;
        Ok(copy)
    }

    /// Lets it go on by itself, and returns how it ended.
    pub fn finish(self) -> io::Result<child::End> {
        ptrace::detach(self.pid, None)?;
        Ok(child::wait(self.pid, child::LIMIT))
    }
}

impl Drop for Tracee {
    fn drop(&mut self) {
        // Neither has anything to do if it has ended.
        let _ = kill(self.pid, Signal::SIGKILL);
        let _ = waitpid(self.pid, Some(WaitPidFlag::__WALL));
    }
}

fn stopped(pid: Pid, signal: Signal) -> io::Result<()> {
    match waitpid(pid, Some(WaitPidFlag::__WALL))? {
        WaitStatus::Stopped(_, by) if by == signal => Ok(()),
        other => Err(io::Error::other(format!("not stopped by {signal}: {other:?}"))),
    }
}
