//! The contenders of other C libraries: programs that are built here, and that measure `direct` too.

use std::path::{Path, PathBuf};
use std::process::Command;

use vdso_time::vdso::Vdso;
use vdso_time_benches::harness::command::run;

/// The C libraries, their compilers, and what to install.
const C: [(&str, &str, &str); 2] =
    [("glibc static", "cc", "gcc, libc6-dev"), ("musl", "musl-gcc", "musl-tools")];

/// Builds the programs. The error of a program says what is missing here.
pub fn build(folder: &Path) -> [Result<PathBuf, String>; 2] {
    C.map(|(name, compiler, packages)| {
        let program = folder.join(name.replace(' ', "-"));
        let mut command = Command::new(compiler);
        // Fixed places in a cache line, so that short loops compare.
        command.args(["-static", "-O2", "-falign-functions=64", "-falign-loops=64"]);
        command.arg(format!("-DLIBRARY=\"{name}\"")).arg("-o").arg(&program);
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/c/helper.c"));
        run(&mut command).map_err(|error| format!("{name} is left out; Debian: {packages}: {error}"))?;
        Ok(program)
    })
}

/// Returns the offsets of the vDSO's functions in the image.
pub fn offsets() -> String {
    let vdso = Vdso::locate();
    let offset = |name| {
        let vdso = vdso.as_ref().ok()?;
        let find = |prefix| vdso.symbol_address(&format!("{prefix}_{name}"), None);
        Some(find("__vdso").or_else(|| find("__kernel"))?.addr() - vdso.base().addr())
    };
    let names = ["clock_gettime", "time", "clock_getres"];
    names.map(|name| offset(name).unwrap_or(0).to_string()).join(",")
}
