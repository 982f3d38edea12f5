//! The CPUs that this thread may run on.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use crate::not_run_here;

/// This thread.
const SELF: Pid = Pid::from_raw(0);

/// Returns their numbers; says so if the kernel does not answer.
pub fn allowed() -> Option<Vec<usize>> {
    let allowed = sched_getaffinity(SELF);
    let allowed = allowed.map_err(|error| not_run_here(format!("sched_getaffinity: {error}")));
    let allowed = allowed.ok()?;
    Some(
        (0..CpuSet::count())
            .filter(|cpu| allowed.is_set(*cpu).unwrap_or(false))
            .collect(),
    )
}

/// Moves this thread to one of them, and keeps it there; says so if the kernel refuses.
pub fn pin(cpu: usize) -> bool {
    let mut one = CpuSet::new();
    let pinned = one.set(cpu).and_then(|()| sched_setaffinity(SELF, &one));
    let pinned =
        pinned.map_err(|error| not_run_here(format!("CPU {cpu}: sched_setaffinity: {error}")));
    pinned.is_ok()
}
