//! The walker is compiled here once more, with a counter of its steps.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cfg=vdso_time_steps");
    println!("cargo::rustc-check-cfg=cfg(vdso_time_steps, vdso_time_libc_fallback)");
    println!("cargo::rustc-check-cfg=cfg(feature, values(\"std\"))");
}
