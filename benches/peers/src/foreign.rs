//! The contenders of other toolchains: programs that are built here, and that measure `direct` too.

use std::path::{Path, PathBuf};
use std::process::Command;

use vdso_time::vdso::Vdso;
use vdso_time_benches::harness::command::run;

/// A program of another toolchain.
pub struct Foreign {
    pub program: PathBuf,
    /// The name of the contender, and what compiled it.
    pub version: String,
}

/// The C libraries, their compilers, and what to install.
const C: [(&str, &str, &str); 2] =
    [("glibc static", "cc", "gcc, libc6-dev"), ("musl", "musl-gcc", "musl-tools")];

/// Builds the programs. The error of a program says what is missing here.
pub fn build(folder: &Path) -> Vec<Result<Foreign, String>> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut programs = Vec::new();
    for (name, compiler, packages) in C {
        let program = folder.join(name.replace(' ', "-"));
        let mut command = Command::new(compiler);
        // Fixed places in a cache line, so that short loops compare.
        command.args(["-static", "-O2", "-falign-functions=64", "-falign-loops=64"]);
        command.arg(format!("-DLIBRARY=\"{name}\"")).arg("-o").arg(&program).arg(sources.join("c/helper.c"));
        let built = run(&mut command).and_then(|_| run(Command::new(compiler).arg("--version")));
        programs.push(match built {
            Ok(said) => Ok(Foreign {
                program,
                version: format!("{name}: {}", said.lines().next().unwrap_or_default()),
            }),
            Err(error) => Err(format!("{name} is left out; Debian: {packages}: {error}")),
        });
    }
    if cfg!(target_arch = "x86_64") {
        let program = folder.join("go");
        let mut go = Command::new("go");
        go.current_dir(sources.join("go")).env("GOTOOLCHAIN", "local").args([
            "build",
            "-buildvcs=false",
            "-o",
        ]);
        let built = run(go.arg(&program).arg(".")).and_then(|_| run(Command::new("go").arg("version")));
        programs.push(match built {
            Ok(version) => Ok(Foreign { program, version: version.trim().to_string() }),
            Err(error) => Err(format!("Go is left out; it needs go 1.21 or newer: {error}")),
        });
    }
    programs
}

/// Returns the offsets of the vDSO's functions in the image.
pub fn offsets() -> String {
    let vdso = Vdso::locate();
    let offset = |name| {
        let vdso = vdso.as_ref().ok()?;
        let find = |prefix| vdso.symbol_address(&format!("{prefix}_{name}"), None);
        Some(find("__vdso").or_else(|| find("__kernel"))?.addr() - vdso.base().addr())
    };
    let names = ["clock_gettime", "gettimeofday", "time", "clock_getres", "getcpu"];
    names.map(|name| offset(name).unwrap_or(0).to_string()).join(",")
}
