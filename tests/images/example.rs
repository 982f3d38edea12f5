//! The example `symbols` names a file that it cannot read or that is not an image, and says why.

use std::process::{self, Command};
use std::{env, fs};

use test_support::child::this_program;
use test_support::not_run_here;

#[test]
fn an_error_names_the_file_and_the_reason() {
    // Where cargo puts the examples of `cargo test`.
    let example = this_program().parent().unwrap().with_file_name("examples").join("symbols");
    let file = env::temp_dir().join(format!("vdso-time-no-image-{}", process::id()));
    let error = || {
        let output = Command::new(&example).arg(&file).output().ok()?;
        // An emulator's posix_spawn(3) reports a program that the kernel cannot execute by status 127.
        (output.status.code() != Some(127)).then(|| String::from_utf8(output.stderr).unwrap())
    };
    let Some(missing) = error() else {
        return not_run_here("exec", format!("{} cannot be run", example.display()));
    };
    let path = file.display();
    assert!(missing.starts_with(&format!("symbols: cannot read {path}: ")), "{missing}");
    fs::write(&file, "text").unwrap();
    let text = error().unwrap();
    fs::remove_file(&file).unwrap();
    assert!(text.contains(&path.to_string()) && text.contains("not an ELF image"), "{text}");
}
