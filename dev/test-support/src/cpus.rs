//! The CPUs that this thread may run on.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use crate::{Need, not_run_here};

/// This thread.
const SELF: Pid = Pid::from_raw(0);

/// The set of them, restored when this is dropped.
pub struct Cpus(CpuSet);

impl Cpus {
    /// Asks the kernel which they are; says so if it does not answer.
    pub fn allowed() -> Option<Self> {
        let allowed = sched_getaffinity(SELF);
        let allowed =
            allowed.map_err(|error| not_run_here(Need::Affinity, format!("sched_getaffinity: {error}")));
        allowed.ok().map(Self)
    }

    /// Returns their numbers.
    pub fn numbers(&self) -> Vec<usize> {
        (0..CpuSet::count()).filter(|cpu| self.0.is_set(*cpu).unwrap_or(false)).collect()
    }

    /// Moves this thread to one of them, and keeps it there; says so if the kernel refuses.
    pub fn pin(&self, cpu: usize) -> bool {
        let mut one = CpuSet::new();
        let pinned = one.set(cpu).and_then(|()| sched_setaffinity(SELF, &one));
        let pinned = pinned.map_err(|error| {
            not_run_here(Need::Affinity, format!("CPU {cpu}: sched_setaffinity: {error}"));
        });
        pinned.is_ok()
    }

    /// Lets this thread run on all of them again.
    pub fn release(&self) {
        // It was allowed before. If it no longer is, another program has changed that.
        let _ = sched_setaffinity(SELF, &self.0);
    }
}

impl Drop for Cpus {
    fn drop(&mut self) {
        self.release();
    }
}
