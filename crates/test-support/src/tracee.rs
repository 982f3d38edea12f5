//! A forked child that is executed one instruction at a time, and is forked once more wherever it stands (x86_64).

#![allow(unsafe_code, reason = "fork(2) and ptrace(2) are called here")]

use std::ffi::{c_long, c_void};
use std::fs::{self, File};
use std::io;
use std::mem;
use std::os::unix::fs::FileExt as _;
use std::ptr::null_mut;

use libc::{pid_t, user_regs_struct};

/// How the child of a stopped child goes on.
pub enum Fate {
    /// In this function, which never returns: as where another thread forked, and not the one that stood there.
    Call(extern "C" fn() -> !),
    /// Where it was, once its handler of this signal has returned.
    Signal(i32),
}

/// A child that is stopped; it ends with this.
pub struct Tracee {
    pid: pid_t,
    memory: File,
    /// Where it has a `syscall` instruction.
    syscall: u64,
}

impl Tracee {
    /// Forks a child that begins with `work`, and stops it there; the error says what is missing here. `syscall` is the
    /// address of a `syscall` instruction.
    pub fn start(work: extern "C" fn() -> !, syscall: usize) -> io::Result<Self> {
        // SAFETY: the child does no more than `work`.
        let pid = match unsafe { libc::fork() } {
            0 => {
                if ptrace(libc::PTRACE_TRACEME, 0, 0, null_mut()).is_ok() {
                    // SAFETY: raise(3) takes any signal.
                    unsafe { libc::raise(libc::SIGSTOP) };
                }
                work()
            }
            -1 => return Err(io::Error::last_os_error()),
            pid => pid,
        };
        let file = format!("/proc/{pid}/mem");
        let memory =
            File::open(&file).map_err(|error| io::Error::new(error.kind(), format!("{file}: {error}")))?;
        let tracee = Self { pid, memory, syscall: syscall as u64 };
        tracee.stopped(libc::SIGSTOP)?;
        let options = (libc::PTRACE_O_TRACEFORK | libc::PTRACE_O_EXITKILL) as usize;
        ptrace(libc::PTRACE_SETOPTIONS, pid, 0, options as *mut c_void)?;
        Ok(tracee)
    }

    /// Executes one instruction, and says where the next one is.
    pub fn step(&self) -> io::Result<u64> {
        ptrace(libc::PTRACE_SINGLESTEP, self.pid, 0, null_mut())?;
        self.stopped(libc::SIGTRAP)?;
        Ok(registers(self.pid)?.rip)
    }

    /// The bytes there.
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.memory.read_exact_at(bytes, address)
    }

    /// How many files it has open.
    pub fn files(&self) -> io::Result<usize> {
        Ok(fs::read_dir(format!("/proc/{}/fd", self.pid))?.count())
    }

    /// Forks it where it stands. The new process is a child of this one, and no longer traced.
    pub fn fork(&self, fate: &Fate) -> io::Result<pid_t> {
        let before = registers(self.pid)?;
        let mut calling = before;
        calling.rax = libc::SYS_clone as u64;
        calling.orig_rax = u64::MAX;
        calling.rdi = (libc::CLONE_PARENT | libc::SIGCHLD) as u64;
        (calling.rsi, calling.rdx, calling.r10, calling.r8) = (0, 0, 0, 0);
        calling.rip = self.syscall;
        set_registers(self.pid, &mut calling)?;
        ptrace(libc::PTRACE_SINGLESTEP, self.pid, 0, null_mut())?;
        self.stopped(libc::SIGTRAP | libc::PTRACE_EVENT_FORK << 8)?;
        let mut child: u64 = 0;
        ptrace(libc::PTRACE_GETEVENTMSG, self.pid, 0, (&raw mut child).cast())?;
        let child = child as pid_t;
        self.step()?;
        let mut after = before;
        after.orig_rax = u64::MAX; // or a call that was interrupted would be made again
        set_registers(self.pid, &mut after)?;

        wait(child, libc::SIGSTOP)?;
        let signal = match *fate {
            Fate::Call(function) => {
                // Below what the interrupted function keeps under its stack pointer; as at a function's entry.
                after.rsp = ((after.rsp - 1024) & !15) - 8;
                after.rip = function as usize as u64;
                0
            }
            Fate::Signal(signal) => signal,
        };
        set_registers(child, &mut after)?;
        ptrace(libc::PTRACE_DETACH, child, 0, signal as usize as *mut c_void)?;
        Ok(child)
    }

    fn stopped(&self, signal: i32) -> io::Result<()> {
        wait(self.pid, signal)
    }
}

impl Drop for Tracee {
    fn drop(&mut self) {
        // SAFETY: it is a child that was not waited for.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
        // SAFETY: no status is wanted.
        unsafe { libc::waitpid(self.pid, null_mut(), libc::__WALL) };
    }
}

/// Waits until a process stops by this signal, above which there may be an event.
fn wait(pid: pid_t, signal: i32) -> io::Result<()> {
    let mut status = 0;
    // SAFETY: waitpid(2) writes the status there.
    if unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL) } == -1 {
        return Err(io::Error::last_os_error());
    }
    if libc::WIFSTOPPED(status) && status >> 8 == signal {
        return Ok(());
    }
    Err(io::Error::other(format!("process {pid} did not stop by {signal:#x}: wait status {status:#x}")))
}

fn registers(pid: pid_t) -> io::Result<user_regs_struct> {
    // SAFETY: registers are numbers, and may be all zero.
    let mut registers: user_regs_struct = unsafe { mem::zeroed() };
    ptrace(libc::PTRACE_GETREGS, pid, 0, (&raw mut registers).cast())?;
    Ok(registers)
}

fn set_registers(pid: pid_t, registers: &mut user_regs_struct) -> io::Result<()> {
    ptrace(libc::PTRACE_SETREGS, pid, 0, (&raw mut *registers).cast())
}

/// ptrace(2); `data` is a number, or where the request reads or writes.
fn ptrace(request: impl Into<c_long>, pid: pid_t, address: usize, data: *mut c_void) -> io::Result<()> {
    // SAFETY: the caller's place is good for what the request reads or writes there.
    match unsafe { libc::syscall(libc::SYS_ptrace, request.into(), pid, address, data) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
