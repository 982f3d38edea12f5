//! Programs that the compiler at hand makes of the library, for any target that it has std for.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::child::this_program;
use crate::not_run::target_tmpdir;

/// The folder of the package vdso-time.
pub const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The target that cargo was given, by the place of this test program: `TARGET/debug/deps`.
pub fn given_target() -> Option<String> {
    let program = this_program();
    let folder = program.ancestors().nth(3)?.file_name()?.to_str()?;
    Some(folder.to_owned()).filter(|folder| folder.contains("-linux-"))
}

/// A library of the workspace, optimised, in a target folder of its own. The error says what is
/// missing here.
pub fn library(
    [package, features]: [&str; 2],
    triple: &str,
    folder: &str,
    settings: &[(&str, &str)],
) -> Result<PathBuf, String> {
    find_standard_library(triple)?;
    let folder = target_tmpdir().join(folder);
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(ROOT).envs(settings.iter().copied());
    cargo.args(["build", "--release", "--lib", "--package", package]);
    cargo.args(["--no-default-features", "--features", features]);
    cargo.args(["--target", triple, "--target-dir"]).arg(&folder);
    run(&mut cargo).unwrap_or_else(|error| panic!("{error}"));
    Ok(folder.join(triple).join(format!("release/lib{}.rlib", package.replace('-', "_"))))
}

/// Compiles one file with that library and what it depends on; the error is what the compiler says.
pub fn compile(triple: &str, source: &str, library: &Path, flags: &[&str], to: &Path) -> Result<(), String> {
    let source = Path::new(ROOT).join(source);
    let name = library.file_stem().and_then(|name| name.to_str()).expect("UTF-8").trim_start_matches("lib");
    let mut rustc = rustc();
    rustc.args(["--edition=2024", "--target", triple, "--extern", &format!("{name}={}", library.display())]);
    rustc.arg("-L").arg(library.with_file_name("deps")).args(flags);
    run(rustc.arg("-o").arg(to).arg(source)).map(drop)
}

/// Compiles one file that needs no library but `core` to an object (`obj`) or a listing (`asm`).
pub fn emit(kind: &str, triple: &str, source: &Path, flags: &[&str], to: &Path) {
    let mut rustc = rustc();
    rustc.args(["--edition=2024", "--crate-type=lib", "--emit", kind, "--target", triple]).args(flags);
    run(rustc.arg("-o").arg(to).arg(source)).unwrap_or_else(|error| panic!("{error}"));
}

/// Whether there are a compiler and its standard library for a target; the error says what is
/// missing here.
pub fn find_standard_library(triple: &str) -> Result<(), String> {
    let standard = run(rustc().args(["--print", "target-libdir", "--target", triple]))?;
    if !Path::new(standard.trim_end()).is_dir() {
        return Err(format!("the compiler has no standard library for {triple}"));
    }
    Ok(())
}

fn rustc() -> Command {
    Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
}

fn run(command: &mut Command) -> Result<String, String> {
    // Machine code is looked at, which instrumentation would change.
    command.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command:?}\n{}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8(output.stdout).expect("UTF-8"))
}
