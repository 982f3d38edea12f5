//! The CPUs that this thread may run on.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use crate::not_run_here;

/// This thread.
const SELF: Pid = Pid::from_raw(0);

/// Returns the CPU numbers, or records the test as not run.
pub fn allowed() -> Option<Vec<usize>> {
    let allowed = match sched_getaffinity(SELF) {
        Ok(allowed) => allowed,
        Err(error) => {
            not_run_here(format!("sched_getaffinity: {error}"));
            return None;
        }
    };
    let mut cpus = Vec::new();
    for cpu in 0..CpuSet::count() {
        if allowed.is_set(cpu) == Ok(true) {
            cpus.push(cpu);
        }
    }
    Some(cpus)
}

/// Moves this thread to one of them and keeps it there, or records the test as not run.
pub fn pin(cpu: usize) -> bool {
    let mut one = CpuSet::new();
    let pinned = one.set(cpu).and_then(|()| sched_setaffinity(SELF, &one));
    if let Err(error) = pinned {
        not_run_here(format!("CPU {cpu}: sched_setaffinity: {error}"));
    }
    pinned.is_ok()
}
