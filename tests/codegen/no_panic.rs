//! The promise: no panic is left in what does not format and is not called `now` or `elapsed`.
//!
//! `programs/no_panic.rs` calls all of it. Its panic handler calls a missing function: the compiler
//! drops the handler, or the linker fails.

use std::fs;
use std::path::{Path, PathBuf};

use test_support::{not_run_here, program};

/// What the panic handler calls.
const MISSING: &str = "this_program_can_panic";

/// The methods that panic where a sandbox denies the clock.
const PANICKING: [&str; 4] = ["Instant::now", "Instant::elapsed", "SystemTime::now", "SystemTime::elapsed"];

/// The library as a program with `lto` and `panic = "abort"` has it.
fn library(triple: &str) -> Result<PathBuf, String> {
    let settings = [("CARGO_PROFILE_RELEASE_LTO", "true"), ("CARGO_PROFILE_RELEASE_PANIC", "abort")];
    program::library(triple, "no-panic", &settings)
}

/// Compiles the program with that library, to an archive, which takes no linker, or whole.
fn compile(triple: &str, library: &Path, more: &[&str]) -> Result<PathBuf, String> {
    let name: String = more.concat().chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
    let to = library.with_file_name(format!("no-panic{name}"));
    let known = "--check-cfg=cfg(panics, values(any()))";
    let flags = ["-Copt-level=3", "-Clto", "-Cpanic=abort", "-Ccodegen-units=1", known];
    program::compile(triple, "tests/codegen/programs/no_panic.rs", library, &[&flags, more].concat(), &to)?;
    Ok(to)
}

fn compiled(triple: &str, library: &Path, more: &[&str]) -> PathBuf {
    compile(triple, library, more).unwrap_or_else(|error| panic!("{error}"))
}

/// The flag by which the program calls a method that panics.
fn calling(method: &str) -> String {
    format!("--cfg=panics=\"{method}\"")
}

/// Whether the program has the name of the missing function.
fn can_panic(archive: &Path) -> bool {
    let bytes = fs::read(archive).unwrap();
    let has = |name: &str| bytes.windows(name.len()).any(|bytes| bytes == name.as_bytes());
    assert!(has("main"));
    has(MISSING)
}

#[test]
fn no_panic_is_left_for_any_target() {
    for [.., triple] in vdso_time::arch::TARGETS {
        let library = match library(triple) {
            Ok(library) => library,
            Err(why) => {
                not_run_here(triple, why);
                continue;
            }
        };
        let archive = compiled(triple, &library, &["--crate-type=staticlib"]);
        assert!(!can_panic(&archive), "{triple}: {}", archive.display());
        let archive = compiled(triple, &library, &["--crate-type=staticlib", &calling(PANICKING[0])]);
        assert!(can_panic(&archive), "{triple}: {} does not panic", PANICKING[0]);
    }
}

#[cfg(all(target_arch = "x86_64", target_pointer_width = "64", target_env = "gnu"))]
#[test]
fn the_linker_agrees() {
    let triple = "x86_64-unknown-linux-gnu";
    let library = match library(triple) {
        Ok(library) => library,
        Err(why) => return not_run_here(triple, why),
    };
    compiled(triple, &library, &["--emit=link", "-Clink-arg=-lc"]);
    for method in PANICKING {
        let flags = ["--emit=link", "-Clink-arg=-lc", &calling(method)];
        let error = compile(triple, &library, &flags).unwrap_err();
        assert!(error.contains("undefined") && error.contains(MISSING), "{method}: {error}");
    }
}
