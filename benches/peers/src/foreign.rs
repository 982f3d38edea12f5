//! The contenders of other C libraries: programs that are built here.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use vdso_time_benches::harness::command::run;

/// A C library.
struct Library {
    name: &'static str,
    compiler: &'static str,
    /// The packages of Debian that are needed.
    packages: &'static str,
}

const LIBRARIES: [Library; 2] = [
    Library {
        name: "glibc static",
        compiler: "cc",
        packages: "gcc, libc6-dev",
    },
    Library {
        name: "musl",
        compiler: "musl-gcc",
        packages: "musl-tools",
    },
];

/// The source of the programs.
const HELPER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/c/helper.c");

/// Creates the directory of the programs that are built here.
pub fn directory() -> Result<PathBuf, String> {
    let target = match env::var_os("CARGO_TARGET_DIR") {
        Some(target) => PathBuf::from(target),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"),
    };
    let directory = target.join("vdso-time-peers");
    if let Err(error) = fs::create_dir_all(&directory) {
        return Err(format!("{}: {error}", directory.display()));
    }
    Ok(directory)
}

/// The programs that could be built, and a note for each one that could not.
#[derive(Default)]
pub struct Built {
    pub programs: Vec<PathBuf>,
    pub notes: Vec<String>,
}

/// Builds the programs. The note about a program says what is missing here.
pub fn build() -> Result<Built, String> {
    let directory = directory()?;
    let mut built = Built::default();
    for library in LIBRARIES {
        let name = library.name;
        let file = name.replace(' ', "-");
        let program = directory.join(file);
        let mut command = Command::new(library.compiler);
        // Fixed positions in a cache line, so that short loops can be compared.
        command.arg("-static");
        command.arg("-O2");
        command.arg("-falign-functions=64");
        command.arg("-falign-loops=64");
        command.arg(format!("-DLIBRARY=\"{name}\""));
        command.arg("-o");
        command.arg(&program);
        command.arg(HELPER);
        match run(&mut command) {
            Ok(_) => built.programs.push(program),
            Err(error) => {
                let packages = library.packages;
                let note = format!("{name} is left out; Debian: {packages}: {error}");
                built.notes.push(note);
            }
        }
    }
    Ok(built)
}
