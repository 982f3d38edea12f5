//! Links without the C library's start files.

fn main() {
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    assert!(
        flags.contains("relocation-model=static"),
        "run cargo in examples/freestanding, whose .cargo/config.toml sets the relocation model"
    );
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-link-arg-bins=-nostartfiles");
    println!("cargo::rustc-link-arg-bins=-static");
}
