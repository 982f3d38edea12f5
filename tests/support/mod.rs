//! What the live tests share: the two paths, the bracket by the kernel's own answers, and the CPUs.

#![allow(dead_code, reason = "no test file uses all of it")]
#![allow(unsafe_code, reason = "libc is called here")]

pub(crate) mod child;
pub(crate) mod oracle;

use std::fmt::Debug;
use std::mem;

use vdso_time::{ClockId, Cpu, Errno, Timespec, Timeval, syscall};

/// The functions of one way to the clock.
pub(crate) struct Path {
    pub(crate) name: &'static str,
    pub(crate) clock_gettime: fn(ClockId) -> Result<Timespec, Errno>,
    pub(crate) clock_getres: fn(ClockId) -> Result<Timespec, Errno>,
    pub(crate) gettimeofday: fn() -> Result<Timeval, Errno>,
    pub(crate) time: fn() -> Result<i64, Errno>,
    pub(crate) getcpu: fn() -> Result<Cpu, Errno>,
}

/// Both ways: every promise is kept on each.
pub(crate) static PATHS: [Path; 2] = [
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
pub(crate) fn settable(id: i32) -> bool {
    [libc::CLOCK_REALTIME, libc::CLOCK_REALTIME_COARSE, libc::CLOCK_REALTIME_ALARM, libc::CLOCK_TAI]
        .contains(&id)
}

/// Fails unless `read` answers what the kernel does: the same error, or a time between the kernel's before and after.
/// A clock that can be set gets two more tries, for somebody may have set it back in between.
#[track_caller]
pub(crate) fn assert_bracketed<T: PartialOrd + Debug>(
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
pub(crate) fn lies_between<T: PartialOrd>(
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

/// The CPUs that this thread may run on, restored when this is dropped.
pub(crate) struct Cpus {
    allowed: libc::cpu_set_t,
}

impl Cpus {
    /// Asks which they are; says why on standard output if the kernel does not tell.
    pub(crate) fn allowed() -> Option<Self> {
        // SAFETY: a set of CPUs is bits, and may be all zero.
        let mut allowed: libc::cpu_set_t = unsafe { mem::zeroed() };
        // SAFETY: the kernel writes at most this many bytes there; 0 is this thread.
        if unsafe { libc::sched_getaffinity(0, size_of_val(&allowed), &raw mut allowed) } == 0 {
            return Some(Self { allowed });
        }
        println!("not run here: sched_getaffinity: {}", std::io::Error::last_os_error());
        None
    }

    /// Their numbers.
    pub(crate) fn numbers(&self) -> Vec<usize> {
        let is_allowed = |cpu: &usize| {
            // SAFETY: the number lies in the set.
            unsafe { libc::CPU_ISSET(*cpu, &self.allowed) }
        };
        (0..8 * size_of_val(&self.allowed)).filter(is_allowed).collect()
    }

    /// Moves this thread to a CPU and keeps it there; says why not on standard output.
    pub(crate) fn pin(&self, cpu: usize) -> bool {
        let mut one = self.allowed;
        // SAFETY: the set is bits.
        unsafe { libc::CPU_ZERO(&mut one) };
        // SAFETY: the number lies in the set.
        unsafe { libc::CPU_SET(cpu, &mut one) };
        let pinned = run_on(&one);
        if !pinned {
            println!("not run here on CPU {cpu}: sched_setaffinity: {}", std::io::Error::last_os_error());
        }
        pinned
    }

    /// Lets this thread run on all of them again.
    pub(crate) fn release(&self) {
        run_on(&self.allowed);
    }
}

impl Drop for Cpus {
    fn drop(&mut self) {
        self.release();
    }
}

fn run_on(cpus: &libc::cpu_set_t) -> bool {
    // SAFETY: the kernel reads the set; 0 is this thread.
    unsafe { libc::sched_setaffinity(0, size_of_val(cpus), &raw const *cpus) == 0 }
}
