// The architectures whose vDSO this crate calls. `build.rs` includes this file.

/// The `target_arch`, the `target_pointer_width` and one target of every architecture, in the order
/// of `ALL`, the list of the tables in mod.rs.
pub const TARGETS: &[[&str; 3]] = &[
    ["x86", "32", "i686-unknown-linux-gnu"],
    ["x86_64", "64", "x86_64-unknown-linux-gnu"],
    ["aarch64", "64", "aarch64-unknown-linux-gnu"],
    ["arm", "32", "armv7-unknown-linux-gnueabihf"],
    ["riscv64", "64", "riscv64gc-unknown-linux-gnu"],
    ["s390x", "64", "s390x-unknown-linux-gnu"],
    ["loongarch64", "64", "loongarch64-unknown-linux-gnu"],
    ["powerpc64", "64", "powerpc64le-unknown-linux-gnu"],
];
