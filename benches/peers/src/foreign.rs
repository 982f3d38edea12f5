//! The contenders of other C libraries: programs that are built here.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use vdso_time_benches::harness::command::run;

/// The C libraries, their compilers, and what to install.
const C: [(&str, &str, &str); 2] = [
    ("glibc static", "cc", "gcc, libc6-dev"),
    ("musl", "musl-gcc", "musl-tools"),
];

/// Creates the directory of the programs that are built here.
pub fn directory() -> Result<PathBuf, String> {
    let target = match env::var_os("CARGO_TARGET_DIR") {
        Some(target) => PathBuf::from(target),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"),
    };
    let directory = target.join("vdso-time-peers");
    fs::create_dir_all(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    Ok(directory)
}

/// Builds the programs. The error of a program says what is missing here.
pub fn build() -> Result<Vec<Result<PathBuf, String>>, String> {
    let directory = directory()?;
    let program = |(name, compiler, packages): (&str, &str, &str)| {
        let program = directory.join(name.replace(' ', "-"));
        let mut command = Command::new(compiler);
        // Fixed positions in a cache line, so that short loops can be compared.
        command.args(["-static", "-O2", "-falign-functions=64", "-falign-loops=64"]);
        command
            .arg(format!("-DLIBRARY=\"{name}\""))
            .arg("-o")
            .arg(&program);
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/c/helper.c"));
        run(&mut command)
            .map_err(|error| format!("{name} is left out; Debian: {packages}: {error}"))?;
        Ok(program)
    };
    Ok(C.into_iter().map(program).collect())
}
