//! A process executed one instruction at a time; at each, copies of it are made that go on by themselves (x86_64).

#![allow(unsafe_code, reason = "ptrace(2) is called here")]

use std::arch::global_asm;
use std::cell::Cell;
use std::collections::{HashSet, VecDeque};
use std::ffi::{c_int, c_uint, c_void};
use std::fs;
use std::io;
use std::mem;
use std::ops::Range;
use std::ptr::{null_mut, without_provenance_mut};

use libc::{pid_t, user_regs_struct};

// Where the process is sent to be copied: the registers say that the system call is clone(2).
global_asm!(".globl vdso_time_test_clone", "vdso_time_test_clone:", "syscall", "int3");

unsafe extern "C" {
    fn vdso_time_test_clone();
}

/// Copies that run at a time.
const AT_ONCE: usize = 4;

/// The process to walk. All it does must be good in a forked child.
pub struct Process {
    /// What comes before the walk.
    pub prepare: fn(),
    /// What was walked.
    pub walk: fn(),
    /// What comes after it, in the process and in each copy: the exit status, of which 0 is good.
    pub finish: fn() -> c_int,
}

/// What was walked.
#[derive(Debug, Default)]
pub struct Walked {
    pub instructions: usize,
    /// Of these, where copies were made. In the vDSO an instruction is tried once, however often it is executed: a read is
    /// begun again if the kernel wrote to its page meanwhile, which it does more often than copies are made.
    pub tried: usize,
}

/// Walks a process. At every `nth` instruction a copy of it goes on for each of `signals`, with that signal; 0 is none.
pub fn walk(process: &Process, nth: usize, signals: &[c_int]) -> io::Result<Walked> {
    let vdso = vdso()?;
    // SAFETY: the child does what a `Process` does, and leaves.
    let walker = match unsafe { libc::fork() } {
        -1 => return Err(io::Error::last_os_error()),
        0 => be_walked(process),
        pid => Tracee::new(pid),
    };
    walker.wait_for(libc::SIGSTOP).map_err(|_| io::Error::from(io::ErrorKind::Unsupported))?;
    let options = libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_EXITKILL;
    walker.ptrace(libc::PTRACE_SETOPTIONS, without_provenance_mut(options as usize))?;
    walker.go_on(libc::PTRACE_CONT)?;

    let mut count = Walked::default();
    let mut tried_in_vdso = HashSet::new();
    let mut copies = VecDeque::new();
    loop {
        let registers = walker.registers()?;
        let at = registers.rip;
        if at == finish as *const () as u64 {
            break;
        }
        let in_vdso = vdso.contains(&at);
        if in_vdso && tried_in_vdso.insert(at) || !in_vdso && count.instructions % nth == 0 {
            count.tried += 1;
            for &signal in signals {
                copies.push_back((walker.copy(registers, signal)?, at, signal));
                if copies.len() > AT_ONCE {
                    copies.pop_front().map_or(Ok(()), ended_well)?;
                }
            }
        }
        count.instructions += 1;
        walker.go_on(libc::PTRACE_SINGLESTEP)?;
    }
    copies.into_iter().try_for_each(ended_well)?;
    walker.ptrace(libc::PTRACE_DETACH, null_mut())?;
    ended_well((walker, 0, 0))?;
    Ok(count)
}

fn be_walked(process: &Process) -> ! {
    (process.prepare)();
    // SAFETY: a child asks its parent to trace it.
    if unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, null_mut::<c_void>(), null_mut::<c_void>()) } != 0 {
        // SAFETY: it takes any status.
        unsafe { libc::_exit(1) };
    }
    // SAFETY: it stops for the tracer.
    unsafe { libc::raise(libc::SIGSTOP) };
    // SAFETY: the tracer goes on behind it.
    unsafe { std::arch::asm!("int3") };
    (process.walk)();
    finish(process)
}

/// Its address is where the walk ends.
#[inline(never)]
extern "C" fn finish(process: &Process) -> ! {
    let status = (process.finish)();
    // SAFETY: _exit(2) takes any status.
    unsafe { libc::_exit(status) }
}

/// A process that is traced, or was; it ends with this.
struct Tracee {
    pid: pid_t,
    ended: Cell<bool>,
}

impl Tracee {
    const fn new(pid: pid_t) -> Self {
        Self { pid, ended: Cell::new(false) }
    }

    /// A copy of the process, whose registers these are: it goes on by itself, with a signal.
    fn copy(&self, registers: user_regs_struct, signal: c_int) -> io::Result<Self> {
        // A brother, so that its end is told to us.
        let clone = user_regs_struct {
            rip: vdso_time_test_clone as *const () as u64,
            rax: libc::SYS_clone as u64,
            orig_rax: u64::MAX,
            rdi: libc::CLONE_PARENT as u64,
            rsi: 0,
            rdx: 0,
            r10: 0,
            r8: 0,
            ..registers
        };
        self.set_registers(clone)?;
        self.ptrace(libc::PTRACE_CONT, null_mut())?;
        self.wait_for(libc::SIGTRAP | libc::PTRACE_EVENT_CLONE << 8)?;
        let mut pid: libc::c_ulong = 0;
        self.ptrace(libc::PTRACE_GETEVENTMSG, (&raw mut pid).cast())?;
        let copy = Self::new(pid as pid_t);
        self.go_on(libc::PTRACE_CONT)?;
        self.set_registers(registers)?;
        copy.wait_for(libc::SIGSTOP)?;
        copy.set_registers(registers)?;
        copy.ptrace(libc::PTRACE_DETACH, without_provenance_mut(signal as usize))?;
        Ok(copy)
    }

    fn registers(&self) -> io::Result<user_regs_struct> {
        // SAFETY: registers are numbers, and may be all zero.
        let mut registers: user_regs_struct = unsafe { mem::zeroed() };
        self.ptrace(libc::PTRACE_GETREGS, (&raw mut registers).cast())?;
        Ok(registers)
    }

    fn set_registers(&self, mut registers: user_regs_struct) -> io::Result<()> {
        self.ptrace(libc::PTRACE_SETREGS, (&raw mut registers).cast())
    }

    /// Lets it go on, to its next trap.
    fn go_on(&self, request: c_uint) -> io::Result<()> {
        self.ptrace(request, null_mut())?;
        self.wait_for(libc::SIGTRAP)
    }

    /// ptrace(2), of the requests that have no address.
    fn ptrace(&self, request: c_uint, data: *mut c_void) -> io::Result<()> {
        // SAFETY: `data` is a number, or a place for what the request reads or writes.
        match unsafe { libc::ptrace(request, self.pid, null_mut::<c_void>(), data) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    /// Waits until it stops, and for this reason.
    fn wait_for(&self, reason: c_int) -> io::Result<()> {
        let status = self.wait()?;
        if libc::WIFSTOPPED(status) && status >> 8 == reason {
            return Ok(());
        }
        Err(io::Error::other(format!("wait status {status:#x}, not a stop for {reason:#x}")))
    }

    fn wait(&self) -> io::Result<c_int> {
        let mut status = 0;
        // SAFETY: waitpid(2) writes the status there.
        if unsafe { libc::waitpid(self.pid, &raw mut status, libc::__WALL) } == -1 {
            return Err(io::Error::last_os_error());
        }
        self.ended.set(!libc::WIFSTOPPED(status));
        Ok(status)
    }
}

impl Drop for Tracee {
    fn drop(&mut self) {
        if !self.ended.get() {
            // SAFETY: it is there until it is waited for.
            unsafe { libc::kill(self.pid, libc::SIGKILL) };
            let _ = self.wait();
        }
    }
}

/// Waits for the end of a process that was copied at this instruction, and got this signal.
fn ended_well((process, at, signal): (Tracee, u64, c_int)) -> io::Result<()> {
    match process.wait()? {
        0 => Ok(()),
        status => {
            let what = format!("signal {signal} at {at:#x}: wait status {status:#x}");
            Err(io::Error::other(what))
        }
    }
}

fn vdso() -> io::Result<Range<u64>> {
    let maps = fs::read_to_string("/proc/self/maps")?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]"));
    let range = line.and_then(|line| line.split_whitespace().next()?.split_once('-'));
    let number = |text| u64::from_str_radix(text, 16).map_err(io::Error::other);
    range.map_or(Ok(0..0), |(start, end)| Ok(number(start)?..number(end)?))
}
