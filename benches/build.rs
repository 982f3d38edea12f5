//! The compiler's version, for the tables.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let rustc = env::var_os("RUSTC").expect("Cargo names the compiler");
    let output = Command::new(rustc).arg("--version").output().expect("the compiler runs");
    println!("cargo::rustc-env=VERSION_OF_RUSTC={}", String::from_utf8_lossy(&output.stdout).trim());
}
