//! The promise: no code can panic that does not format, is not called `now` or `elapsed`, and is
//! not `+` or `-` of a time and a duration.
//!
//! `programs/no_panic.rs` calls all of it. Its panic handler calls a missing function, so linking
//! would fail if the compiler did not drop the handler.

use std::fs;
use std::path::Path;

use test_support::program;

/// The function that the panic handler calls.
const MISSING: &str = "this_program_can_panic";

/// The functions that panic where a sandbox denies the clock, or where the result does not fit.
const PANICKING: [&str; 6] = [
    "Instant::now",
    "Instant::elapsed",
    "SystemTime::now",
    "SystemTime::elapsed",
    "Instant + Duration",
    "SystemTime - Duration",
];

/// Returns whether the program has the name of the missing function. It is compiled to an archive,
/// which needs no linker.
fn can_panic(triple: &str, library: &Path, more: &[&str]) -> Option<bool> {
    let to = library.with_file_name("no-panic.a");
    let flags = [
        "-Copt-level=3",
        "-Clto",
        "-Cpanic=abort",
        "-Ccodegen-units=1",
        "--crate-type=staticlib",
    ];
    let flags = [
        &flags[..],
        &["--check-cfg=cfg(panics, values(any()))"],
        more,
    ]
    .concat();
    program::compile(
        triple,
        "tests/codegen/programs/no_panic.rs",
        library,
        &flags,
        &to,
    )?;
    let bytes = fs::read(to).unwrap();
    let has = |name: &str| {
        let mut windows = bytes.windows(name.len());
        windows.any(|window| window == name.as_bytes())
    };
    assert!(has("main"));
    Some(has(MISSING))
}

#[test]
fn no_panic_is_left_for_any_target() {
    for (index, [.., triple]) in vdso_time::__private::TARGETS.iter().enumerate() {
        // The library as a program with `lto` and `panic = "abort"` has it.
        let settings = [
            ("CARGO_PROFILE_RELEASE_LTO", "true"),
            ("CARGO_PROFILE_RELEASE_PANIC", "abort"),
        ];
        let library = program::library(["vdso-time", ""], triple, "no-panic", &settings);
        let Some(library) = library else {
            continue;
        };
        let Some(panics) = can_panic(triple, &library, &[]) else {
            continue;
        };
        assert!(!panics, "{triple}");
        // Each compilation takes seconds.
        let methods = if index == 0 {
            &PANICKING[..]
        } else {
            &PANICKING[..1]
        };
        for method in methods {
            let panics = can_panic(triple, &library, &[&format!("--cfg=panics=\"{method}\"")]);
            assert_eq!(panics, Some(true), "{triple}: {method} does not panic");
        }
    }
}
