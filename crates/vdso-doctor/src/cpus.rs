//! The CPUs that this thread may run on.

use nix::Result;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

const THIS_THREAD: Pid = Pid::from_raw(0);

/// The CPUs of a thread that can be moved to each of them.
pub(crate) struct Cpus {
    allowed: CpuSet,
    numbers: Vec<usize>,
}

impl Cpus {
    /// Returns nothing if the kernel or a sandbox does not let this thread move.
    pub(crate) fn movable() -> Option<Self> {
        let allowed = sched_getaffinity(THIS_THREAD).ok()?;
        let numbers = (0..CpuSet::count()).filter(|cpu| allowed.is_set(*cpu) == Ok(true)).collect();
        let cpus = Self { allowed, numbers };
        let can_move = cpus.numbers.iter().all(|cpu| pin(*cpu).is_ok());
        cpus.release();
        can_move.then_some(cpus)
    }

    pub(crate) fn numbers(&self) -> &[usize] {
        &self.numbers
    }

    /// Does `work` on each CPU that is still online. This thread may run on all of them afterwards.
    pub(crate) fn on_each(&self, mut work: impl FnMut()) {
        self.numbers.iter().filter(|cpu| pin(**cpu).is_ok()).for_each(|_| work());
        self.release();
    }

    /// An error means that somebody changed the CPUs meanwhile. That change stays.
    fn release(&self) {
        let _ = sched_setaffinity(THIS_THREAD, &self.allowed);
    }
}

fn pin(cpu: usize) -> Result<()> {
    let mut one = CpuSet::new();
    one.set(cpu)?;
    sched_setaffinity(THIS_THREAD, &one)
}
