//! Sets the conditions of the sources.
//!
//! - `vdso_time_linux`: there is a Linux kernel.
//! - `vdso_time_clock`: there is a clock, Linux's or std's.
//! - `vdso_time_libc_fallback`: the target is not in the list of `src/arch`, or its programs cannot
//!   call the vDSO.

include!("src/arch/targets.rs");

fn main() {
    println!("cargo::rerun-if-changed=src/arch/targets.rs");
    // docs.rs sets the first, the tests set the others.
    println!("cargo::rustc-check-cfg=cfg(docsrs, vdso_time_assume_invariant)");
    println!("cargo::rustc-check-cfg=cfg(vdso_time_android_order, vdso_time_other_os)");
    println!(
        "cargo::rustc-check-cfg=cfg(vdso_time_linux, vdso_time_clock, vdso_time_libc_fallback)"
    );
    let cfg = |name: &str| std::env::var(format!("CARGO_CFG_{name}")).unwrap_or_default();
    let has = |name: &str| std::env::var_os(format!("CARGO_{name}")).is_some();
    let arch = cfg("TARGET_ARCH");
    let width = cfg("TARGET_POINTER_WIDTH");
    let is_linux =
        ["linux", "android"].contains(&cfg("TARGET_OS").as_str()) && !has("CFG_VDSO_TIME_OTHER_OS");
    // The function pointers of big-endian powerpc64 are the addresses of descriptors, and the vDSO
    // has none.
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
    // LLVM's CFI checks each call through a pointer, and its tables lack the vDSO's functions.
    let is_checked = cfg("SANITIZE")
        .split(',')
        .any(|name| ["cfi", "kcfi"].contains(&name));
    if has("CFG_MIRI") || !is_linux || !is_listed || has_descriptors || is_checked {
        println!("cargo::rustc-cfg=vdso_time_libc_fallback");
    }
}
