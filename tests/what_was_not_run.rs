//! The last test program of `cargo test`: it prints how many tests the others did not run on this
//! machine. Each of them has said so itself, but the output of a test that passes is not shown.

use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;

use test_support::not_run;

#[test]
fn what_was_not_run_is_counted() {
    let lines = not_run::take();
    for line in &lines {
        println!("{line}");
    }
    if !lines.is_empty() {
        // Not by `println!`, whose output is captured.
        let _ = writeln!(
            io::stdout(),
            "Tests, or parts of tests, that were not run here: {}. `cargo test -- --show-output` says \
             which, and why.",
            lines.len()
        );
    }
}

/// cargo runs the test programs of a package in the order of their names.
#[test]
fn no_test_program_comes_after_this_one() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    let files = match fs::read_dir(folder) {
        Ok(files) => files.map(|file| file.unwrap().path()),
        Err(error) => return not_run(format!("the sources are not here: {folder}: {error}")),
    };
    let is_program =
        |file: &PathBuf| file.extension() == Some("rs".as_ref()) || file.join("main.rs").exists();
    let last = files.filter(is_program).max().unwrap();
    assert_eq!(last.file_name(), Some("what_was_not_run.rs".as_ref()));
}
