//! Names the compiler, which a machine that runs the benches need not have.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let output = Command::new(&rustc)
        .arg("--version")
        .output()
        .expect("the compiler that cargo named");
    println!(
        "cargo::rustc-env=BENCHES_COMPILER={}",
        String::from_utf8_lossy(&output.stdout).trim()
    );
}
