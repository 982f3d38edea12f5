//! `core` for targets that nobody packages it for: its metadata, which is all a type-check reads.
//!
//! The compiler is called directly. Cargo's `-Zbuild-std` would do the same, but also build
//! `compiler_builtins`, and do both again for every target folder.

use std::path::Path;

use crate::cache;
use crate::process::{stdout, step};
use crate::toolchain::Compiler;

/// Every `no_std` crate is linked to this one, and none that is only checked looks into it.
const COMPILER_BUILTINS: &str = "\
#![feature(compiler_builtins)]
#![compiler_builtins]
#![allow(internal_features)]
#![no_std]
";

/// Makes `core` for the target in our tree, unless it is there. Otherwise tells why it is not.
pub(crate) fn ensure(compiler: &Compiler, sysroot: &Path, triple: &str) -> Result<(), String> {
    let rustlib = sysroot.join("lib/rustlib");
    let place = rustlib.join(triple);
    if place.is_dir() {
        return Ok(());
    }
    let source = rustlib.join("src/rust/library/core/src/lib.rs");
    if !compiler.ours || !source.is_file() {
        return Err("the compiler has no libraries for it".into());
    }
    step(&format!("making core for {triple}"));
    cache::build_once(&place, |draft| {
        let folder = draft.join("lib");
        cache::create(&folder)?;
        metadata(compiler, triple, "core", &source, &folder)?;
        // It needs the core just made, which is not yet where the compiler looks.
        let stub = draft.join("compiler_builtins.rs");
        cache::write(&stub, COMPILER_BUILTINS)?;
        metadata(compiler, triple, "compiler_builtins", &stub, &folder)
    })
}

fn metadata(
    compiler: &Compiler,
    triple: &str,
    name: &str,
    source: &Path,
    folder: &Path,
) -> Result<(), String> {
    stdout(
        compiler
            .rustc()
            // A released compiler builds its own library only if told so.
            .env("RUSTC_BOOTSTRAP", "1")
            .args(["--edition", "2021", "--crate-type", "rlib"])
            .args(["--emit", "metadata", "--cap-lints", "allow"])
            .args(["-Z", "force-unstable-if-unmarked"])
            .args(["--target", triple, "--crate-name", name])
            .arg("-L")
            .arg(folder)
            .arg("--out-dir")
            .arg(folder)
            .arg(source),
    )?;
    Ok(())
}
