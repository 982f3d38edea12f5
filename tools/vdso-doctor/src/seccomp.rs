//! A thread whose clock calls fail with an error number that no clock call has. If the vDSO's
//! function returns that number, it asked the kernel.
//!
//! A filter belongs to one thread and cannot be removed, so the thread ends after its reads. The
//! calling thread keeps its CPUs, its signal mask and its privileges.

#![allow(
    unsafe_code,
    reason = "prctl(2) and sched_setaffinity(2) are called here"
)]

use std::ffi::{c_int, c_long, c_ulong};
use std::mem::offset_of;
use std::thread;

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal};
use vdso_time::{ClockId, syscall};

use crate::vdso_call::VdsoCall;

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

/// What the thread found out.
pub(crate) struct Count {
    /// The CPUs on which the reads were made; empty if a sandbox does not let the thread move.
    pub(crate) cpus: Vec<usize>,
    /// How many reads of each function were made.
    pub(crate) reads: u32,
    /// How many of them made a system call.
    pub(crate) entered: Vec<u32>,
}

/// Calls each function so many times on each CPU that the calling thread may use. The error says
/// why nothing can be proved.
pub(crate) fn count(entries: &[VdsoCall], on_each_cpu: u32) -> Result<Count, String> {
    thread::scope(|scope| {
        let work = || {
            block_signals();
            install().map_err(|error| {
                format!("the kernel or a sandbox denies seccomp filters ({error})")
            })?;
            let answer = syscall::clock_gettime(ClockId::MONOTONIC);
            if answer.err() != vdso_time::Errno::from_raw_os_error(MARK) {
                return Err("a seccomp filter does not stop a clock call here".into());
            }
            Ok(call_on_each_cpu(entries, on_each_cpu))
        };
        let thread = thread::Builder::new().spawn_scoped(scope, work);
        let thread = thread.map_err(|error| format!("a thread cannot be started ({error})"))?;
        thread
            .join()
            .unwrap_or_else(|_| Err("the thread that makes the reads failed".into()))
    })
}

/// Blocks signals, whose handlers then run in other threads and can read the clock there. A fault
/// must still reach its handler.
fn block_signals() {
    use Signal::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};
    let mut signals = SigSet::all();
    for fault in [SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP] {
        signals.remove(fault);
    }
    let _ = signals.thread_block();
}

/// Installs a filter that denies the clock calls of this thread. The thread makes no call of
/// another architecture, whose numbers mean something else.
fn install() -> Result<(), Errno> {
    let statement = |code: u32, k: u32| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k,
    };
    let number = offset_of!(libc::seccomp_data, nr) as u32;
    let mut filter = vec![statement(
        libc::BPF_LD | libc::BPF_W | libc::BPF_ABS,
        number,
    )];
    for call in CLOCK_CALLS {
        let is_other = libc::sock_filter {
            jf: 1,
            ..statement(libc::BPF_JMP | libc::BPF_JEQ, *call as u32)
        };
        filter.extend([
            is_other,
            statement(libc::BPF_RET, libc::SECCOMP_RET_ERRNO | MARK as u32),
        ]);
    }
    filter.push(statement(libc::BPF_RET, libc::SECCOMP_RET_ALLOW));
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
    Errno::result(set).map(drop)
}

fn call_on_each_cpu(entries: &[VdsoCall], calls: u32) -> Count {
    let mut count = Count {
        cpus: Vec::new(),
        reads: 0,
        entered: vec![0; entries.len()],
    };
    let mut call_here = || {
        count.reads += calls;
        for (entry, entered) in entries.iter().zip(&mut count.entered) {
            // powerpc's vDSO returns a positive error number. What time() returns are seconds.
            let asks_kernel = || match entry.call() {
                seconds if entry.returns_time() => seconds == -i64::from(MARK),
                answer => answer.unsigned_abs() == MARK as u64,
            };
            *entered += (0..calls).filter(|_| asks_kernel()).count() as u32;
        }
    };
    let allowed = allowed();
    // A CPU that went offline meanwhile is left out.
    let moved = allowed
        .iter()
        .copied()
        .filter(|cpu| pin(*cpu))
        .inspect(|_| call_here());
    count.cpus = moved.collect();
    if count.cpus.is_empty() {
        call_here();
        // A thread with one CPU need not be moved.
        count
            .cpus
            .extend(allowed.first().filter(|_| allowed.len() == 1));
    }
    count
}

/// A set of CPUs, as the kernel has it. The kernel refuses one with less room than it has CPUs, and
/// libc's `cpu_set_t` has room for 1024. No kernel is built for more than 8192.
type CpuSet = [c_ulong; CPUS / BITS];
const CPUS: usize = 8192;
const BITS: usize = c_ulong::BITS as usize;

/// Returns the CPUs on which this thread may run. None if that is not known.
fn allowed() -> Vec<usize> {
    let mut set: CpuSet = [0; CPUS / BITS];
    // SAFETY: the kernel writes at most the bytes of the set.
    let got = unsafe { libc::sched_getaffinity(0, size_of_val(&set), set.as_mut_ptr().cast()) };
    let is_set = |cpu: &usize| set[cpu / BITS] >> (cpu % BITS) & 1 == 1;
    (0..CPUS).filter(|cpu| got == 0 && is_set(cpu)).collect()
}

/// Moves this thread to a CPU.
fn pin(cpu: usize) -> bool {
    let mut one: CpuSet = [0; CPUS / BITS];
    one[cpu / BITS] = 1 << (cpu % BITS);
    // SAFETY: the kernel reads the bytes of the set.
    unsafe { libc::sched_setaffinity(0, size_of_val(&one), one.as_ptr().cast()) == 0 }
}
