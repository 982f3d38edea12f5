//! The contenders of other toolchains: programs that are built here, and time their calls as the harness does, the vDSO's own functions among
//! them, so that what is compared is the ratio to those.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use vdso_time::vdso::Vdso;

/// A program of another toolchain.
pub struct Foreign {
    pub name: &'static str,
    pub program: PathBuf,
    /// What compiled it.
    pub version: String,
}

/// What is compiled in C: the name, the compiler, what gets it.
const C: [(&str, &str, &str); 2] = [
    ("glibc static", "cc", "a C compiler and a static glibc (Debian: gcc, libc6-dev)"),
    ("musl", "musl-gcc", "musl-gcc (Debian: musl-tools)"),
];

/// Whose contender this is: another toolchain's, or none.
pub fn home(contender: &str) -> Option<&'static str> {
    let mut homes = C.iter().map(|(name, ..)| *name).chain(["Go"]);
    homes.find(|home| contender == *home || contender.starts_with(&format!("{home} ")))
}

/// Builds the programs that can be built here, and says of the others why not.
pub fn build(folder: &Path) -> (Vec<Foreign>, Vec<String>) {
    let (mut built, mut skipped) = (Vec::new(), Vec::new());
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (name, compiler, need) in C {
        let program = folder.join(name.replace(' ', "-"));
        let mut command = Command::new(compiler);
        command.args(["-static", "-O2", &format!("-DLIBRARY=\"{name}\""), "-o"]).arg(&program);
        match run(command.arg(sources.join("c/helper.c"))) {
            Ok(_) => {
                let version = run(Command::new(compiler).arg("--version")).unwrap_or_default();
                let version = version.lines().next().unwrap_or_default().to_string();
                built.push(Foreign { name, program, version });
            }
            Err(error) => skipped.push(format!("{name} is skipped: it takes {need}: {error}")),
        }
    }
    let program = folder.join("go");
    let mut go = Command::new("go");
    go.current_dir(sources.join("go")).env("GOTOOLCHAIN", "local").args(["build", "-buildvcs=false", "-o"]);
    if cfg!(target_arch = "x86_64") {
        match run(go.arg(&program).arg(".")) {
            Ok(_) => {
                let version = run(Command::new("go").arg("version")).unwrap_or_default();
                built.push(Foreign { name: "Go", program, version: version.trim().to_string() });
            }
            Err(error) => skipped.push(format!("Go is skipped: it takes go 1.21 or newer: {error}")),
        }
    } else {
        skipped.push("Go is skipped: its way to the vDSO's own functions is written for x86_64".into());
    }
    (built, skipped)
}

/// What a command printed.
pub fn run(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let error = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program}: {}: {}", output.status, error.lines().next().unwrap_or_default()))
}

/// Where the vDSO's functions are in the image, as the programs want it.
pub fn offsets() -> String {
    let names = ["clock_gettime", "gettimeofday", "time", "clock_getres", "getcpu"];
    let vdso = Vdso::locate();
    let mut offsets = String::new();
    for name in names {
        let symbol = vdso.as_ref().ok().and_then(|vdso| {
            let find = |prefix| vdso.symbol(&format!("{prefix}_{name}"), None);
            Some(find("__vdso").or_else(|| find("__kernel"))?.addr() - vdso.base().addr())
        });
        let _ = write!(offsets, "{},", symbol.unwrap_or(0)); // a String takes every write
    }
    offsets
}

/// Makes the folder of the programs.
pub fn folder(target: &Path) -> Result<PathBuf, String> {
    let folder = target.join("vdso-time-peers");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}
