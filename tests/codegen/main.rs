//! Tests of the generated code: instructions, panics, symbols and sizes.
//!
//! These tests run the compiler, and look at the programs and listings that it makes.

#![cfg(any(target_os = "linux", target_os = "android"))]

mod arm_words;
mod freestanding;
mod instruction_count;
mod linked;
mod no_panic;

use std::path::{Path, PathBuf};

use test_support::program::ROOT;

/// How the compiler makes the library with all its functions, without cargo.
const FLAGS: &[&str] = &[
    "--crate-name=vdso_time",
    "--cfg=vdso_time_linux",
    "--cfg=vdso_time_clock",
    "-Copt-level=3",
    "-Clink-dead-code",
    "-Ccodegen-units=1",
];

/// Returns the library's source.
fn source() -> PathBuf {
    Path::new(ROOT).join("src/lib.rs")
}

fn place(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}
