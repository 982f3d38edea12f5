//! The machines of the matrix.

use vdso_time_kernel_runner::machine::Machine;
use vdso_time_kernel_runner::step;

/// All machines, in the order of the page.
const MACHINES: &str = "
    x86_64@native i686@native
    # QEMU's own vDSO.
    x86_64@qemu-10 i686@qemu-10 aarch64@qemu-10 armv7@qemu-10 thumbv7@qemu-10
    # Images of arm64 have DT_GNU_HASH only since 6.12.
    aarch64@5.10 aarch64@6.1 aarch64@6.12 aarch64@7
    armv7@5.10 armv7@6.1 armv7@6.12 armv7@7 thumbv7@7
    # The addresses of the functions are odd.
    armv7@arm64-5.10 armv7@arm64-6.1 armv7@arm64-6.12 armv7@arm64-7
    # All names are blanked; 5.10 leaves one.
    armv7@5.10+notimer armv7@6.1+notimer armv7@6.12+notimer armv7@7+notimer
    x86_64@5.10 x86_64@6.1 x86_64@6.12 x86_64@7
    i686@5.10 i686@6.1 i686@amd64-5.10 i686@amd64-6.1 i686@amd64-6.12 i686@amd64-7
    # Clock sources that the vDSO cannot read.
    x86_64@6.12+hpet x86_64@6.12+acpi_pm x86_64@6.12+jiffies i686@6.1+hpet
    x86_64@6.12+vdso=0 i686@amd64-6.12+vdso=0 i686@amd64-6.12+vdso32=0
    # The seconds exceed 32 bits.
    x86_64@6.12+2040 i686@5.10+2040 i686@6.1+2040 i686@amd64-6.12+2040 aarch64@6.12+2040
    armv7@6.12+2040 armv7@6.12+notimer+2040 armv7@arm64-6.12+2040
    x86_64@6.12+2cpus aarch64@6.12+2cpus
    # FEAT_ECV.
    aarch64@7+ecv
    # Images of riscv64 have DT_GNU_HASH only since 6.16.
    riscv64@qemu-10 riscv64@6.12 riscv64@7
    # DT_HASH has 64-bit words.
    s390x@qemu-10 s390x@6.1 s390x@6.12 s390x@7
    loongarch64@qemu-10 loongarch64@7
    # Errors of the vDSO are positive.
    ppc64le@qemu-10 ppc64le@6.1 ppc64le@6.12 ppc64le@7
";

/// Returns the names of all machines.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    MACHINES.lines().filter(|line| !line.trim_start().starts_with('#')).flat_map(str::split_whitespace)
}

/// Returns the machines that can run here. Prints which ones cannot.
pub(super) fn machines() -> Vec<Machine> {
    let machine = |name: &str| name.parse().map_err(|why| step(&format!("{name} not run here: {why}"))).ok();
    names().filter_map(machine).collect()
}

#[cfg(test)]
mod tests {
    use super::names;
    use vdso_time_kernel_runner::machine::Machine;

    #[test]
    fn each_machine_is_listed_once_by_its_name() {
        let all: Vec<&str> = names().collect();
        for (at, name) in all.iter().enumerate() {
            let machine = name.parse::<Machine>().map(|machine| machine.to_string());
            // This machine may not run all architectures.
            assert!(name.ends_with("@native") || machine.as_deref() == Ok(name), "{name}: {machine:?}");
            assert!(!all[..at].contains(name), "{name} is listed twice");
        }
    }
}
