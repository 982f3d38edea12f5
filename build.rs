//! Sets one cfg, `vdso_time_libc_fallback`, where no file of `src/arch` has the system call in assembly.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // What docs.rs sets, and the tests: a counter of steps, a TSC taken as invariant, Android's order of system calls.
    println!(
        "cargo::rustc-check-cfg=cfg(docsrs, vdso_time_libc_fallback, vdso_time_steps, vdso_time_assume_invariant, vdso_time_android_order)"
    );
    let cfg = |name: &str| std::env::var(format!("CARGO_CFG_{name}")).unwrap_or_default();
    let (arch, width) = (cfg("TARGET_ARCH"), cfg("TARGET_POINTER_WIDTH"));
    let linux = ["linux", "android"].contains(&cfg("TARGET_OS").as_str());
    let first_class = [("x86", "32"), ("x86_64", "64"), ("aarch64", "64"), ("arm", "32")]
        .contains(&(arch.as_str(), width.as_str()));
    let miri = std::env::var_os("CARGO_CFG_MIRI").is_some();
    if miri || !linux || !first_class {
        println!("cargo::rustc-cfg=vdso_time_libc_fallback");
    }
}
