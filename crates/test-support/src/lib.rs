//! What the live tests share: the two paths, the bracket by the kernel's own answers, and the CPUs.

#![allow(unsafe_code, reason = "libc is called here")]
#![allow(missing_docs, clippy::missing_panics_doc, clippy::missing_errors_doc, reason = "not published")]
#![allow(clippy::must_use_candidate, clippy::missing_safety_doc, reason = "not published")]
#![cfg(any(target_os = "linux", target_os = "android"))]

pub mod answers;
pub mod child;
pub mod cost;
mod cpus;
pub mod filter;
pub mod not_run;
pub mod oracle;
pub mod program;
pub mod program_counter;
pub mod register;
#[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
pub mod stepper;
#[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
pub mod tracee;
pub mod vector;
#[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
pub mod walker;

use std::fmt::Debug;

pub use cpus::Cpus;
pub use not_run::{has_proc, has_tool, is_required, not_run, not_run_here};
use vdso_time::{ClockId, Cpu, Errno, Timespec, Timeval, syscall};

/// The functions of one way to the clock.
pub struct Path {
    pub name: &'static str,
    pub clock_gettime: fn(ClockId) -> Result<Timespec, Errno>,
    pub clock_getres: fn(ClockId) -> Result<Timespec, Errno>,
    pub gettimeofday: fn() -> Result<Timeval, Errno>,
    pub time: fn() -> Result<i64, Errno>,
    pub getcpu: fn() -> Result<Cpu, Errno>,
}

/// Both ways: every promise is kept on each.
pub static PATHS: [Path; 2] = [
    Path {
        name: "vDSO",
        clock_gettime: vdso_time::clock_gettime,
        clock_getres: vdso_time::clock_getres,
        gettimeofday: vdso_time::gettimeofday,
        time: || Ok(vdso_time::time()),
        getcpu: vdso_time::getcpu,
    },
    Path {
        name: "kernel",
        clock_gettime: syscall::clock_gettime,
        clock_getres: syscall::clock_getres,
        gettimeofday: syscall::gettimeofday,
        time: syscall::time,
        getcpu: syscall::getcpu,
    },
];

/// Whether a clock can be set: by people, by NTP, or by a hypervisor.
pub fn settable(id: i32) -> bool {
    [libc::CLOCK_REALTIME, libc::CLOCK_REALTIME_COARSE, libc::CLOCK_REALTIME_ALARM, libc::CLOCK_TAI]
        .contains(&id)
}

/// Fails unless `read` answers what the kernel does: the same error, or a time between the kernel's before and after.
/// A clock that can be set gets two more tries, for somebody may have set it back in between.
#[track_caller]
pub fn assert_bracketed<T: PartialOrd + Debug>(
    what: &str,
    settable: bool,
    kernel: impl Fn() -> Result<T, i32>,
    read: impl Fn() -> Result<T, Errno>,
) {
    let tries = if settable { 3 } else { 1 };
    let mut seen = String::new();
    for _ in 0..tries {
        let (before, ours, after) = (kernel(), read().map_err(Errno::raw_os_error), kernel());
        if lies_between(&before, &ours, &after) {
            return;
        }
        seen = format!("{before:?} <= {ours:?} <= {after:?}");
    }
    panic!("{what}: not true that {seen}");
}

/// Whether an answer is the same error as the kernel's two, or lies between them.
pub fn lies_between<T: PartialOrd>(
    before: &Result<T, i32>,
    ours: &Result<T, i32>,
    after: &Result<T, i32>,
) -> bool {
    match (before, ours, after) {
        (Ok(before), Ok(ours), Ok(after)) => before <= ours && ours <= after,
        (Err(before), Err(ours), _) => before == ours,
        _ => false,
    }
}

/// The CPUs that this thread may run on.
pub fn allowed_cpus() -> Option<Cpus> {
    Cpus::allowed().map_err(|error| not_run_here("affinity", format!("sched_getaffinity: {error}"))).ok()
}

/// Moves this thread to a CPU and keeps it there, if the kernel lets it.
pub fn pin(cpus: &Cpus, cpu: usize) -> bool {
    let pinned = cpus.pin(cpu);
    pinned.map_err(|error| not_run_here("affinity", format!("CPU {cpu}: sched_setaffinity: {error}"))).is_ok()
}
