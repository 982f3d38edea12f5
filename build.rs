//! Sets the cfg flags that the sources use.
//!
//! - `vdso_time_linux`: the target has a Linux kernel.
//! - `vdso_time_clock`: the crate can read a clock, Linux's or std's.
//! - `vdso_time_libc_fallback`: the crate does not call the vDSO, for one of these reasons: the
//!   system is not Linux, the architecture is not in `src/arch/targets.rs`, or the program cannot
//!   call the vDSO (on big-endian powerpc64, in Miri, and if it is built with CFI or KCFI). On
//!   Linux, libc answers instead.

include!("src/arch/targets.rs");

fn main() {
    println!("cargo::rerun-if-changed=src/arch/targets.rs");
    // docs.rs sets `docsrs`. The tests set the other three.
    println!("cargo::rustc-check-cfg=cfg(docsrs, vdso_time_assume_invariant)");
    println!("cargo::rustc-check-cfg=cfg(vdso_time_android_calls, vdso_time_other_os)");
    println!(
        "cargo::rustc-check-cfg=cfg(vdso_time_linux, vdso_time_clock, vdso_time_libc_fallback)"
    );
    let cfg = |name: &str| std::env::var(format!("CARGO_CFG_{name}")).unwrap_or_default();
    let has = |name: &str| std::env::var_os(format!("CARGO_{name}")).is_some();
    let arch = cfg("TARGET_ARCH");
    let width = cfg("TARGET_POINTER_WIDTH");
    let is_linux =
        ["linux", "android"].contains(&cfg("TARGET_OS").as_str()) && !has("CFG_VDSO_TIME_OTHER_OS");
    // On big-endian powerpc64 with the ELFv1 ABI, a function pointer is the address of a function
    // descriptor, and the vDSO has no descriptors (`can_call` of src/choice.rs). musl's programs
    // use the ELFv2 ABI, which has no descriptors. But this script and `can_call` do not tell the
    // two ABIs apart, so musl's programs call libc as well.
    let has_descriptors = arch == "powerpc64" && cfg("TARGET_ENDIAN") == "big";
    let is_listed = TARGETS
        .iter()
        .any(|[listed, bits, _]| (*listed, *bits) == (&*arch, &*width));
    if is_linux {
        println!("cargo::rustc-cfg=vdso_time_linux");
    }
    if is_linux || has("FEATURE_STD") {
        println!("cargo::rustc-cfg=vdso_time_clock");
    }
    // LLVM's CFI checks each call through a pointer against its own tables of functions. The vDSO's
    // functions are not in these tables, so CFI would end a program that calls one of them.
    let is_checked = cfg("SANITIZE")
        .split(',')
        .any(|name| ["cfi", "kcfi"].contains(&name));
    if has("CFG_MIRI") || !is_linux || !is_listed || has_descriptors || is_checked {
        println!("cargo::rustc-cfg=vdso_time_libc_fallback");
    }
}
