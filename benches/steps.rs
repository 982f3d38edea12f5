//! The instructions of a call, which no other program changes.

#![allow(unsafe_code, reason = "fork(2)")]

use std::process::abort;

use nix::sys::ptrace;
use nix::sys::signal::{Signal, raise};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};
use vdso_time_benches::harness::Contender;

/// Returns how many instructions a turn of the loop executes outside of the kernel, or `None` if
/// this machine does not step through a process.
pub(crate) fn instructions(contender: &Contender) -> Option<usize> {
    // The least of several counts, because the vDSO starts a read again if the kernel wrote
    // meanwhile.
    let count = |calls| (0..25).map(|_| steps(contender, calls)).min()?;
    count(3)?.checked_sub(count(2)?)
}

/// Returns the steps of a child from one stop to the next. Between them are the calls.
fn steps(contender: &Contender, calls: u64) -> Option<usize> {
    // SAFETY: this process has one thread, so the child may call everything.
    match unsafe { fork() }.ok()? {
        ForkResult::Child => {
            let stop = || raise(Signal::SIGSTOP).is_ok();
            let is_traced = ptrace::traceme().is_ok();
            // The first calls find the functions, of libc's stop, too.
            contender.call(calls);
            if is_traced && stop() {
                contender.call(calls);
                stop();
            }
            abort();
        }
        ForkResult::Parent { child } => {
            let steps = step(child);
            // It has ended already, or ends here.
            let _ = ptrace::kill(child);
            let _ = waitpid(child, None);
            steps
        }
    }
}

fn step(child: Pid) -> Option<usize> {
    let is_stopped = |by| matches!(waitpid(child, None), Ok(WaitStatus::Stopped(_, signal)) if signal == by);
    if !is_stopped(Signal::SIGSTOP) {
        return None;
    }
    let mut steps = 0;
    loop {
        ptrace::step(child, None).ok()?;
        if !is_stopped(Signal::SIGTRAP) {
            return Some(steps);
        }
        steps += 1;
    }
}
