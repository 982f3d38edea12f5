//! A seccomp filter that makes the clock calls of one thread fail with an error number that no
//! clock call returns otherwise.
//!
//! A filter cannot be removed, so the thread ends after its calls.

#![allow(unsafe_code, reason = "prctl(2) is called here")]

use std::ffi::{c_int, c_long};
use std::mem::offset_of;

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal};
use vdso_time::{ClockId, syscall};

/// The error number of a denied call: "Exchange full".
pub(crate) const MARK: c_int = libc::EXFULL;

/// The system calls, old and new, that can answer `time`, `gettimeofday`, `clock_gettime`,
/// `clock_getres` or `getcpu`.
const CLOCK_CALLS: &[c_long] = &[
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_gettimeofday,
    libc::SYS_getcpu,
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    libc::SYS_time,
    // clock_gettime64 and clock_getres_time64.
    #[cfg(target_pointer_width = "32")]
    403,
    #[cfg(target_pointer_width = "32")]
    406,
];

/// Makes the clock calls of the calling thread fail with [`MARK`]. If that is not possible, returns
/// an error that says why.
pub(crate) fn deny_clock_calls() -> Result<(), String> {
    block_signals();
    if let Err(error) = install() {
        return Err(format!(
            "the kernel or a sandbox denies seccomp filters ({error})"
        ));
    }
    let answer = syscall::clock_gettime(ClockId::MONOTONIC);
    if answer.err() != vdso_time::Errno::from_raw_os_error(MARK) {
        return Err("a seccomp filter does not stop a clock call here".into());
    }
    Ok(())
}

/// Blocks signals in this thread, because the filter would also deny the clock calls of a signal
/// handler that runs in this thread. Other threads then handle the signals. The signals of faults
/// are not blocked, because a fault must still reach its handler.
fn block_signals() {
    use Signal::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};
    let mut signals = SigSet::all();
    for fault in [SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP] {
        signals.remove(fault);
    }
    let _ = signals.thread_block();
}

/// Installs a filter that denies the clock calls of this thread. The filter compares only the
/// number of a call. It does not check the architecture, which decides what the number means,
/// because this thread makes no calls of another architecture.
fn install() -> Result<(), Errno> {
    let statement = |code: u32, k: u32| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k,
    };
    let number = offset_of!(libc::seccomp_data, nr) as u32;
    let load = statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, number);
    let deny = statement(libc::BPF_RET, libc::SECCOMP_RET_ERRNO | MARK as u32);
    let allow = statement(libc::BPF_RET, libc::SECCOMP_RET_ALLOW);
    let mut filter = vec![load];
    for call in CLOCK_CALLS {
        let skip_if_other = libc::sock_filter {
            jf: 1,
            ..statement(libc::BPF_JMP | libc::BPF_JEQ, *call as u32)
        };
        filter.extend([skip_if_other, deny]);
    }
    filter.push(allow);
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    prctl::set_no_new_privs()?;
    // SAFETY: the kernel reads the program, which lives until the call returns.
    let set = unsafe {
        libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const program,
        )
    };
    Errno::result(set)?;
    Ok(())
}
