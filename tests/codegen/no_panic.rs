//! The promise: no code can panic that does not format, is not called `now` or `elapsed`, and is
//! not `+` or `-` of a time and a duration.
//!
//! `programs/no_panic.rs` calls all of it. Its panic handler calls a missing function. The compiler
//! drops the handler and this call, or a linker would fail.

use std::fs;
use std::path::{Path, PathBuf};

use test_support::{not_run_here, program};

/// What the panic handler calls.
const MISSING: &str = "this_program_can_panic";

/// What panics where a sandbox denies the clock, or the result does not fit.
const PANICKING: [&str; 6] = [
    "Instant::now",
    "Instant::elapsed",
    "SystemTime::now",
    "SystemTime::elapsed",
    "Instant + Duration",
    "SystemTime - Duration",
];

/// The library as a program with `lto` and `panic = "abort"` has it.
fn library(triple: &str) -> Result<PathBuf, String> {
    let settings = [("CARGO_PROFILE_RELEASE_LTO", "true"), ("CARGO_PROFILE_RELEASE_PANIC", "abort")];
    program::library(["vdso-time", ""], triple, "no-panic", &settings)
}

/// Compiles the program with that library to an archive, which takes no linker. The error says what
/// is missing here.
fn compile(triple: &str, library: &Path, more: &[&str]) -> Result<PathBuf, String> {
    let name: String = more.concat().chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
    let to = library.with_file_name(format!("no-panic{name}"));
    let known = "--check-cfg=cfg(panics, values(any()))";
    let flags =
        ["-Copt-level=3", "-Clto", "-Cpanic=abort", "-Ccodegen-units=1", "--crate-type=staticlib", known];
    let source = "tests/codegen/programs/no_panic.rs";
    match program::compile(triple, source, library, &[&flags, more].concat(), &to) {
        Ok(()) => Ok(to),
        // `cargo xtask` compiles such libraries where Debian has none.
        Err(error) if error.contains("failed to get bitcode") => Err("core has no bitcode".into()),
        Err(error) => panic!("{error}"),
    }
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
    for (index, [.., triple]) in vdso_time::__private::TARGETS.iter().enumerate() {
        let compiled = |library: &PathBuf, more: &[&str]| compile(triple, library, more);
        let found = library(triple).and_then(|library| Ok((compiled(&library, &[])?, library)));
        let (archive, library) = match found {
            Ok(found) => found,
            Err(why) => {
                not_run_here(triple, why);
                continue;
            }
        };
        assert!(!can_panic(&archive), "{triple}: {}", archive.display());
        // Each compilation takes seconds.
        for method in &PANICKING[..if index == 0 { PANICKING.len() } else { 1 }] {
            let archive = compiled(&library, &[&calling(method)]).unwrap();
            assert!(can_panic(&archive), "{triple}: {method} does not panic");
        }
    }
}
