//! What the tests of this repository need on a machine.

use anyhow::Result;
use vdso_time_kernel_runner::machine::{Machine, Runner};
use vdso_time_kernel_runner::setup::Setup;

pub(crate) fn setup(machine: &Machine) -> Result<Setup> {
    let mut rustflags = "";
    // The needs that must be met on the machine, whatever this machine has.
    let mut requires = Vec::new();
    if let Runner::Kernel(boot) = &machine.runner {
        requires.push("guest");
        if matches!(boot.guest.name, "amd64" | "i386") {
            requires.push("x86-guest");
            // QEMU's CPUs have no invariant TSC, and the tests need one.
            rustflags = "--cfg vdso_time_assume_invariant";
        }
        let is_required = |name: &&str| ["2040", "ecv"].contains(name);
        requires.extend(
            boot.options
                .iter()
                .map(|option| option.name)
                .filter(is_required),
        );
    }
    Setup::new(
        machine,
        rustflags,
        vec![("VDSO_TIME_TEST_REQUIRES".into(), requires.join(" "))],
    )
}
