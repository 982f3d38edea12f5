// The architectures whose vDSO this crate calls. `src/arch/mod.rs` and `build.rs` include this
// file.
//
// A line has the module, its `target_arch`, its `target_pointer_width`, and a target for the tests.

architectures! {
    x86: "x86", "32", "i686-unknown-linux-gnu";
    x86_64: "x86_64", "64", "x86_64-unknown-linux-gnu";
    aarch64: "aarch64", "64", "aarch64-unknown-linux-gnu";
    arm: "arm", "32", "armv7-unknown-linux-gnueabihf";
    riscv64: "riscv64", "64", "riscv64gc-unknown-linux-gnu";
    s390x: "s390x", "64", "s390x-unknown-linux-gnu";
    loongarch64: "loongarch64", "64", "loongarch64-unknown-linux-gnu";
    powerpc64: "powerpc64", "64", "powerpc64le-unknown-linux-gnu";
}
