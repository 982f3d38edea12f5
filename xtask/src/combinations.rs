//! The combinations of the matrix, as data, and what is left out of them.

/// Where everything runs, and whether CI runs it too.
pub(crate) const COMBINATIONS: &[(&str, bool)] = &[
    ("x86_64@native", false),
    ("i686@native", true),
    // Without a vDSO, and with QEMU's own.
    ("x86_64@qemu-7.2", false),
    ("x86_64@qemu-10", false),
    ("i686@qemu-7.2", false),
    ("i686@qemu-10", false),
    ("aarch64@qemu-7.2", false),
    ("aarch64@qemu-10", false),
    ("armv7@qemu-7.2", false),
    ("armv7@qemu-10", true),
    ("thumbv7@qemu-7.2", false),
    ("thumbv7@qemu-10", false),
    // From 6.12 with DT_GNU_HASH alone.
    ("aarch64@5.10", false),
    ("aarch64@6.1", false),
    ("aarch64@6.12", false),
    ("aarch64@7", true),
    ("armv7@5.10", false),
    ("armv7@6.1", false),
    ("armv7@6.12", false),
    ("armv7@7", true),
    ("thumbv7@7", false),
    // The functions' addresses are odd.
    ("armv7@arm64-5.10", false),
    ("armv7@arm64-6.1", false),
    ("armv7@arm64-6.12", false),
    ("armv7@arm64-7", false),
    // 5.10 leaves one name.
    ("armv7@5.10+notimer", false),
    ("armv7@6.1+notimer", false),
    ("armv7@6.12+notimer", true),
    ("armv7@7+notimer", false),
    ("x86_64@5.10", false),
    ("x86_64@6.1", false),
    ("x86_64@6.12", false),
    ("x86_64@7", true),
    ("i686@5.10", false),
    ("i686@6.1", true),
    ("i686@amd64-5.10", false),
    ("i686@amd64-6.1", false),
    ("i686@amd64-6.12", false),
    ("i686@amd64-7", false),
    // Clocks that a vDSO cannot read.
    ("x86_64@6.12+hpet", false),
    ("x86_64@6.12+acpi_pm", false),
    ("x86_64@6.12+jiffies", false),
    ("i686@6.1+hpet", false),
    ("x86_64@6.12+vdso=0", false),
    ("i686@amd64-6.12+vdso=0", false),
    ("x86_64@6.12+vdso32=0", false),
    ("i686@amd64-6.12+vdso32=0", false),
    // More seconds than 32 bits count.
    ("x86_64@6.12+2040", false),
    ("i686@5.10+2040", false),
    ("i686@6.1+2040", true),
    ("i686@amd64-6.12+2040", false),
    ("aarch64@6.12+2040", false),
    ("armv7@6.12+2040", false),
    ("armv7@6.12+notimer+2040", false),
    ("armv7@arm64-6.12+2040", false),
    ("x86_64@6.12+2cpus", false),
    ("aarch64@6.12+2cpus", false),
];

/// The arguments of `cargo test` in each.
pub(crate) const TESTS: &str = "--tests --package vdso-time --package vdso-doctor --features counter";

/// Test programs that call the compiler, and look at what it makes for the machine it runs on: they run natively alone.
pub(crate) const NATIVE_ALONE: &[&str] = &["codegen"];

/// Tests that are not run at places whose names begin so, and why.
pub(crate) const SKIPPED: &[(&str, &str, &str)] = &[
    ("x86_64@qemu-7.2", "the_first_call_may_be_made_in_a_signal_handler", MISALIGNED),
    ("x86_64@qemu-7.2", "a_call_uses_little_stack", MISALIGNED),
    ("x86_64@qemu-7.2", "a_deep_call_is_seen", MISALIGNED),
    ("i686@qemu-7.2", "the_first_call_may_be_made_in_a_signal_handler", MISALIGNED),
    ("i686@qemu-7.2", "a_call_uses_little_stack", MISALIGNED),
    ("i686@qemu-7.2", "a_deep_call_is_seen", MISALIGNED),
];

const MISALIGNED: &str = "QEMU 7.2 starts signal handlers of x86 with a misaligned stack";

#[cfg(test)]
mod tests {
    use super::COMBINATIONS;
    use crate::place::Place;

    #[test]
    fn each_is_a_place_and_once_there() {
        for (at, (name, _)) in COMBINATIONS.iter().enumerate() {
            // This machine may not run all of them.
            let native = name.ends_with("@native");
            assert!(native || Place::parse(name).is_ok_and(|place| place.to_string() == *name), "{name}");
            assert!(COMBINATIONS[..at].iter().all(|(other, _)| other != name), "{name} is there twice");
        }
    }
}
