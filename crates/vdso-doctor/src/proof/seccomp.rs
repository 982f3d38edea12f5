//! A thread whose clock calls fail with an error number that no clock call has. If the vDSO's
//! function returns that number, it asked the kernel.
//!
//! A filter belongs to one thread and cannot be removed, so the thread ends after its reads.

#![allow(unsafe_code, reason = "prctl(2) is called here")]

use std::env::consts::ARCH;
use std::ffi::{c_int, c_long};
use std::io;
use std::mem::offset_of;
use std::thread;

use nix::sys::prctl;
use vdso_time::{ClockId, Errno, syscall};

use super::{Count, Cpus, Entry, count_reads};

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

/// `AUDIT_ARCH_*` of include/uapi/linux/audit.h.
fn audit_arch() -> Option<u32> {
    Some(match ARCH {
        "x86_64" => 0xc000_003e,
        "x86" => 0x4000_0003,
        "aarch64" => 0xc000_00b7,
        "arm" => 0x4000_0028,
        _ => return None,
    })
}

/// A filter that denies the clock calls, and every call of another architecture, because its
/// numbers have another meaning.
fn filter() -> io::Result<Vec<libc::sock_filter>> {
    let audit_arch = audit_arch().ok_or(io::ErrorKind::Unsupported)?;
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let jump =
        |k: u32, jt: u8, jf: u8| libc::sock_filter { jt, jf, ..statement(libc::BPF_JMP | libc::BPF_JEQ, k) };
    let load = |offset: usize| statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset as u32);
    let deny = statement(libc::BPF_RET, libc::SECCOMP_RET_ERRNO | MARK as u32);
    let mut filter = vec![
        load(offset_of!(libc::seccomp_data, arch)),
        jump(audit_arch, 1, 0),
        deny,
        load(offset_of!(libc::seccomp_data, nr)),
    ];
    for call in CLOCK_CALLS {
        filter.extend([jump(*call as u32, 0, 1), deny]);
    }
    filter.push(statement(libc::BPF_RET, libc::SECCOMP_RET_ALLOW));
    Ok(filter)
}

/// Installs the filter for this thread.
fn install() -> io::Result<()> {
    let mut filter = filter()?;
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

/// Counts the reads that make a system call.
pub(super) fn count(entry: Entry, cpus: Option<&Cpus>) -> io::Result<Count> {
    denied(|| count_reads(cpus, || entry.call() == -(MARK as isize)))
}
