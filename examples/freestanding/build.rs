//! Links without the C library's start files. The program is linked at a fixed address, because
//! there is no start file that would relocate it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for argument in ["-nostartfiles", "-static", "-no-pie"] {
        println!("cargo::rustc-link-arg-bins={argument}");
    }
}
