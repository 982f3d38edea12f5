//! What the tests of this repository need on a machine.

use anyhow::Result;
use vdso_time_kernel_runner::machine::{Machine, Runner};
use vdso_time_kernel_runner::setup::Setup;

pub(crate) fn setup(machine: &Machine) -> Result<Setup> {
    let mut rustflags = "";
    // The tests print why they do not run, because a guest cannot append to a file of this machine.
    let mut environment = vec![("VDSO_TIME_SKIPS".into(), "-".into())];
    if let Runner::Kernel(boot) = &machine.runner {
        environment.push(("VDSO_TIME_TEST_MAY_CHANGE_CLOCK".into(), "1".into()));
        if matches!(boot.guest.name, "amd64" | "i386") {
            // QEMU's CPUs have no invariant TSC, and the tests need one.
            rustflags = "--cfg vdso_time_assume_invariant";
        }
    }
    Setup::new(machine, rustflags, environment)
}
