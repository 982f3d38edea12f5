//! Compiles the parser of the kernel's selftests, if `get-parse_vdso` has fetched it.

use std::path::Path;

fn main() {
    const SOURCE: &str = "c/parse_vdso.c";
    println!("cargo::rerun-if-changed=c");
    println!("cargo::rustc-check-cfg=cfg(parse_vdso)");
    if Path::new(SOURCE).exists() {
        cc::Build::new()
            .file(SOURCE)
            .opt_level(2)
            .compile("parse_vdso");
        println!("cargo::rustc-cfg=parse_vdso");
    }
}
