//! Compiles the kernel selftests' parser, `PARSE_VDSO`.

fn main() {
    println!("cargo::rerun-if-env-changed=PARSE_VDSO");
    println!("cargo::rustc-check-cfg=cfg(parse_vdso)");
    if let Ok(source) = std::env::var("PARSE_VDSO") {
        cc::Build::new().file(source).opt_level(2).compile("parse_vdso");
        println!("cargo::rustc-cfg=parse_vdso");
    }
}
