//! Compiles the parser of the kernel's selftests, if `get-parse_vdso` has fetched it.

fn main() {
    const SOURCE: &str = "c/parse_vdso.c";
    println!("cargo::rerun-if-changed=c");
    println!("cargo::rustc-check-cfg=cfg(parse_vdso)");
    if std::fs::exists(SOURCE).is_ok_and(|is_there| is_there) {
        cc::Build::new()
            .file(SOURCE)
            .opt_level(2)
            .compile("parse_vdso");
        println!("cargo::rustc-cfg=parse_vdso");
    }
}
