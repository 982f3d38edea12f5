//! Sets the cfg with which `src/elf` counts its steps.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cfg=vdso_time_steps");
    println!("cargo::rustc-check-cfg=cfg(vdso_time_steps)");
}
