//! Programs that the installed compiler makes with the library, for any target for which it has
//! `std`. A function that lacks the target's libraries, or a tool, records the test as not run and
//! returns `None`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::not_run::{not_run_here, target_tmpdir, this_program};

/// The directory of the package vdso-time.
pub const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Returns the target that cargo was given, from the path of this test program:
/// `TARGET/debug/deps`.
pub fn given_target() -> Option<String> {
    let program = this_program();
    let directory = program.ancestors().nth(3)?.file_name()?.to_str()?;
    if directory.contains("-linux-") {
        Some(directory.to_owned())
    } else {
        None
    }
}

/// Returns what an example of the workspace prints, by `cargo run` with these options; `None` where
/// there is no cargo or no library.
pub fn example(options: &[&str], name: &str, arguments: &[&Path]) -> Option<String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .current_dir(ROOT)
        .args(["run", "--quiet", "--example", name])
        .args(options);
    if let Some(target) = given_target() {
        if !has_standard_library(&target) {
            return None;
        }
        cargo.args(["--target", &target]);
    }
    let output = match cargo.arg("--").args(arguments).output() {
        Ok(output) => output,
        Err(error) => {
            not_run_here(format!("cargo: {error}"));
            return None;
        }
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    Some(String::from_utf8(output.stdout).expect("UTF-8"))
}

/// Builds a library of the workspace, optimised, in a target directory of its own.
pub fn library(
    [package, features]: [&str; 2],
    triple: &str,
    directory: &str,
    settings: &[(&str, &str)],
) -> Option<PathBuf> {
    if !has_standard_library(triple) {
        return None;
    }
    let directory = target_tmpdir().join(directory);
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(ROOT).envs(settings.iter().copied());
    cargo.args(["build", "--release", "--lib", "--package", package]);
    cargo.args(["--no-default-features", "--features", features]);
    cargo
        .args(["--target", triple, "--target-dir"])
        .arg(&directory);
    run(&mut cargo).unwrap_or_else(|error| panic!("{error}"));
    Some(
        directory
            .join(triple)
            .join(format!("release/lib{}.rlib", package.replace('-', "_"))),
    )
}

/// Compiles one file of the workspace with that library and what it depends on.
pub fn compile(
    triple: &str,
    source: &str,
    library: &Path,
    flags: &[&str],
    to: &Path,
) -> Option<()> {
    let name = library.file_stem().expect("a file").to_str();
    let name = name.expect("UTF-8").trim_start_matches("lib");
    let mut rustc = rustc(triple, &Path::new(ROOT).join(source), flags, to);
    rustc
        .arg("--extern")
        .arg(format!("{name}={}", library.display()));
    match run(rustc.arg("-L").arg(library.with_file_name("deps"))) {
        Ok(_) => Some(()),
        // `cargo xtask` compiles such libraries where Debian has none.
        Err(error) if error.contains("failed to get bitcode") => {
            not_run_here("core has no bitcode");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Compiles one file of the workspace with that library. Returns the listing.
pub fn listing(triple: &str, source: &str, library: &Path, more: &[&str]) -> Option<String> {
    let to = library.with_file_name("listing.s");
    let flags = [
        "--crate-type=lib",
        "-Copt-level=3",
        "-Ccodegen-units=1",
        "--emit=asm",
    ];
    compile(triple, source, library, &[&flags, more].concat(), &to)?;
    Some(fs::read_to_string(to).unwrap())
}

/// Compiles one file that needs no library but `core` to an object (`obj`) or a listing (`asm`).
pub fn emit(kind: &str, triple: &str, source: &Path, flags: &[&str], to: &Path) -> Option<Vec<u8>> {
    if !has_standard_library(triple) {
        return None;
    }
    let mut rustc = rustc(triple, source, flags, to);
    run(rustc.args(["--crate-type=lib", "--emit", kind])).unwrap_or_else(|error| panic!("{error}"));
    Some(fs::read(to).unwrap())
}

/// Compiles one file for ARMv5, and fails if the object is marked as one for a later architecture.
/// Returns the object.
pub fn emit_for_armv5(source: &Path, flags: &[&str], to: &Path) -> Option<Vec<u8>> {
    // The compiler at hand has the libraries of this target, not of an older one.
    let older = [
        "-Ctarget-cpu=arm926ej-s",
        "-Ctarget-feature=-v7,-thumb2,-v6t2,-v6k,-v6",
    ];
    let object = emit(
        "obj",
        "armv7-unknown-linux-gnueabihf",
        source,
        &[flags, &older].concat(),
        to,
    )?;
    let text = match run(Command::new("readelf").arg("-A").arg(to)) {
        Ok(text) => text,
        Err(error) => {
            not_run_here(error);
            return None;
        }
    };
    let mut marks = text.lines().filter(|line| line.contains("Tag_CPU_arch: "));
    let mark = marks.next().expect(&text).trim();
    assert_eq!(mark, "Tag_CPU_arch: v5TE", "{text}");
    assert_eq!(marks.next(), None, "{text}");
    Some(object)
}

/// Returns whether there is a compiler with a standard library for a target.
pub fn has_standard_library(triple: &str) -> bool {
    let mut rustc = Command::new(rustc_name());
    let found = run(rustc.args(["--print", "target-libdir", "--target", triple]));
    let why = match found {
        Ok(directory) if Path::new(directory.trim_end()).is_dir() => return true,
        Ok(_) => format!("the compiler has no standard library for {triple}"),
        Err(error) => error,
    };
    not_run_here(why);
    false
}

/// Returns whether programs for a target run on this architecture.
fn is_host(triple: &str) -> bool {
    let arch = match env::consts::ARCH {
        "x86" => "i686",
        arch => arch,
    };
    triple.starts_with(arch)
}

/// Returns the triple of the compiler's machine, or why its programs cannot run here.
pub fn host() -> Result<String, String> {
    let version = compiler()?;
    let mut lines = version.lines();
    let host = lines.find_map(|line| line.strip_prefix("host: "));
    let host = host.expect("a host");
    if !is_host(host) {
        let arch = env::consts::ARCH;
        return Err(format!("the test runs on {arch}, the compiler on {host}"));
    }
    Ok(host.to_owned())
}

/// Returns what the compiler says of itself, or why there is none.
pub fn compiler() -> Result<String, String> {
    run(Command::new(rustc_name()).arg("-vV"))
}

fn rustc_name() -> std::ffi::OsString {
    env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())
}

fn rustc(triple: &str, source: &Path, flags: &[&str], to: &Path) -> Command {
    let mut rustc = Command::new(rustc_name());
    rustc
        .args(["--edition=2024", "--target", triple])
        .args(flags)
        .arg("-o")
        .arg(to)
        .arg(source);
    rustc
}

/// Returns what a command prints, or why it failed.
pub fn run(command: &mut Command) -> Result<String, String> {
    // Machine code is looked at, which instrumentation would change.
    command
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => return Err(format!("{command:?}: {error}")),
    };
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?}\n{said}"));
    }
    Ok(String::from_utf8(output.stdout).expect("UTF-8"))
}
