//! A program executed one instruction at a time, between breakpoints of its own (x86_64).

#![allow(unsafe_code, reason = "ptrace(2) is called here")]

use std::ffi::{c_long, c_void};
use std::fs::{self, File};
use std::io;
use std::mem;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::ptr::null_mut;

use crate::cost::Cost;

const INT3: u8 = 0xcc;
/// `test eax, eax`: of an `int` that a function returned, whether it is 0.
const TEST_EAX: [u8; 2] = [0x85, 0xc0];

/// A program that is stopped; it ends with this.
pub struct Stepper {
    child: Child,
    memory: File,
    vdso: Range<u64>,
}

/// What was executed between two breakpoints.
#[derive(Default)]
pub struct Section {
    /// Outside of the vDSO. Inside it varies: a read is tried again if the kernel wrote to its page meanwhile, as it does
    /// some hundred times a second, and a step takes microseconds.
    pub cost: Cost,
    /// Where the vDSO was entered, each time.
    pub entries: Vec<u64>,
}

impl Stepper {
    /// Starts a program; the error says what is missing here.
    pub fn start(mut command: Command) -> io::Result<Self> {
        // SAFETY: the child makes one system call.
        unsafe { command.pre_exec(|| ptrace(libc::PTRACE_TRACEME, 0, null_mut())) };
        let child = command.spawn()?;
        stopped(&child)?;
        let folder = format!("/proc/{}", child.id());
        let maps = fs::read_to_string(format!("{folder}/maps"))?;
        let vdso = maps.lines().find(|line| line.ends_with("[vdso]")).and_then(range);
        let vdso = vdso.ok_or_else(|| io::Error::other("the program has no vDSO"))?;
        Ok(Self { memory: File::open(format!("{folder}/mem"))?, child, vdso })
    }

    /// Goes to the next breakpoint, and step by step to the one after that.
    pub fn section(&self) -> io::Result<Section> {
        let mut section = Section::default();
        let mut before = [0; 2];
        let mut at = self.resume(libc::PTRACE_CONT)?;
        loop {
            if self.vdso.contains(&at) {
                section.entries.push(at);
                while self.vdso.contains(&at) {
                    at = self.resume(libc::PTRACE_SINGLESTEP)?;
                }
            }
            let mut code = [0; 2];
            self.memory.read_exact_at(&mut code, at)?;
            if code[0] == INT3 {
                break;
            }
            let next = self.resume(libc::PTRACE_SINGLESTEP)?;
            section.cost.instructions += 1;
            // A conditional jump has an offset of 8 bits or of 32.
            let length = match code {
                [0x70..=0x7f, _] => 2,
                [0x0f, 0x80..=0x8f] => 6,
                _ => 0,
            };
            if length != 0 {
                let check = before == TEST_EAX && next == at + length;
                *(if check { &mut section.cost.checks } else { &mut section.cost.branches }) += 1;
            }
            (before, at) = (code, next);
        }
        self.resume(libc::PTRACE_CONT)?;
        Ok(section)
    }

    /// Lets the program go on until it stops again, and says where that is.
    fn resume(&self, request: impl Into<c_long>) -> io::Result<u64> {
        ptrace(request, self.child.id(), null_mut())?;
        stopped(&self.child)?;
        // SAFETY: registers are numbers, and may be all zero.
        let mut registers: libc::user_regs_struct = unsafe { mem::zeroed() };
        ptrace(libc::PTRACE_GETREGS, self.child.id(), &raw mut registers)?;
        Ok(registers.rip)
    }
}

impl Drop for Stepper {
    fn drop(&mut self) {
        // It is there until it is waited for, so neither can fail.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until a child stops at a breakpoint, or behind a step or its exec.
fn stopped(child: &Child) -> io::Result<()> {
    let mut status = 0;
    // SAFETY: waitpid(2) writes the status there.
    if unsafe { libc::waitpid(child.id() as libc::pid_t, &raw mut status, 0) } == -1 {
        return Err(io::Error::last_os_error());
    }
    if libc::WIFSTOPPED(status) && libc::WSTOPSIG(status) == libc::SIGTRAP {
        return Ok(());
    }
    Err(io::Error::other(format!("the program ended or was stopped: wait status {status:#x}")))
}

/// ptrace(2), of the requests that have no address; `registers` is where one of them writes.
fn ptrace(request: impl Into<c_long>, child: u32, registers: *mut libc::user_regs_struct) -> io::Result<()> {
    let nowhere = null_mut::<c_void>();
    // SAFETY: the caller's place is good for what the request writes: registers, or nothing.
    match unsafe { libc::syscall(libc::SYS_ptrace, request.into(), child, nowhere, registers) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// The addresses of a line of proc_pid_maps(5).
fn range(line: &str) -> Option<Range<u64>> {
    let (start, end) = line.split_whitespace().next()?.split_once('-')?;
    Some(u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?)
}
