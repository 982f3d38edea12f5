//! A thread whose clock calls fail with an error number that no clock call has. If the vDSO's
//! function returns that number, it asked the kernel.
//!
//! A filter belongs to one thread and cannot be removed, so the thread ends after its reads.

#![allow(unsafe_code, reason = "prctl(2) is called here")]

use std::ffi::{c_int, c_long};
use std::io;
use std::mem::offset_of;
use std::thread;

use nix::sys::prctl;
use vdso_time::{ClockId, Errno, syscall};

use super::{Cpus, Entry, READS};

/// "Exchange full".
const MARK: c_int = libc::EXFULL;

/// Every system call, old and new, that can answer one of the functions.
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

/// Installs a filter that denies the clock calls of this thread. The thread makes no call of another
/// architecture, whose numbers mean something else.
fn install() -> io::Result<()> {
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let number = offset_of!(libc::seccomp_data, nr) as u32;
    let mut filter = vec![statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, number)];
    for call in CLOCK_CALLS {
        let is_other = libc::sock_filter { jf: 1, ..statement(libc::BPF_JMP | libc::BPF_JEQ, *call as u32) };
        filter.extend([is_other, statement(libc::BPF_RET, libc::SECCOMP_RET_ERRNO | MARK as u32)]);
    }
    filter.push(statement(libc::BPF_RET, libc::SECCOMP_RET_ALLOW));
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    prctl::set_no_new_privs()?;
    // SAFETY: the kernel reads the program, which lives until the call returns.
    let set = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Does `work` in a thread that the filter denies the clock.
fn denied<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, || install().and_then(|()| work()))?;
        thread.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
    })
}

/// Checks that a clock call fails with the mark.
pub(super) fn check() -> io::Result<()> {
    let answer = denied(|| Ok(syscall::clock_gettime(ClockId::MONOTONIC)))?;
    let is_marked = answer.err() == Errno::from_raw_os_error(MARK);
    if is_marked { Ok(()) } else { Err(io::ErrorKind::Unsupported.into()) }
}

/// Reads, and those among them that made a system call.
#[derive(Clone, Copy, Default)]
pub(super) struct Count {
    pub(super) reads: u32,
    pub(super) entered: u32,
}

/// Makes the reads on each CPU, or wherever the thread is if it cannot be moved.
pub(super) fn count(entry: Entry, cpus: Option<&Cpus>) -> io::Result<Count> {
    denied(|| {
        let mut count = Count::default();
        let mut here = || {
            for _ in 0..READS {
                count.reads += 1;
                // powerpc's vDSO returns a positive error number.
                count.entered += u32::from(entry.call().unsigned_abs() == MARK as usize);
            }
        };
        match cpus {
            None => here(),
            Some(cpus) => cpus.on_each(here),
        }
        if count.reads == 0 { Err(io::ErrorKind::NotFound.into()) } else { Ok(count) }
    })
}
