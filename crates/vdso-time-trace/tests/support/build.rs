//! Programs that a test builds.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the tests build.
pub(crate) fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

pub(crate) fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn rustc() -> Command {
    Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
}

/// What a command prints; it must succeed.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    // Whatever the tests themselves are built with.
    for variable in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET"] {
        if !command.get_envs().any(|(name, _)| name == variable) {
            command.env_remove(variable);
        }
    }
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command:?}\n{}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Builds vdso-time and vdso-time-trace, and of a source in `tests/support` what `emit` names, optimised.
#[allow(dead_code, reason = "not every test compiles")]
pub(crate) fn compile(
    source: &str,
    features: &[&str],
    flags: &[&str],
    emit: &str,
) -> Result<PathBuf, String> {
    let folder = folder(&format!("{source}-{}", features.join("-").replace('/', "-")));
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(package()).args([
        "build",
        "--release",
        "--lib",
        "-p",
        "vdso-time",
        "-p",
        "vdso-time-trace",
    ]);
    cargo.args(["--no-default-features", "--features", &features.join(",")]).arg("--target-dir").arg(&folder);
    output(&mut cargo)?;

    let release = folder.join("release");
    let built = release.join(format!("{source}{}.{emit}", flags.concat().replace(['-', ' '], "_")));
    let mut command = rustc();
    command.args(["--edition=2024", "-Copt-level=3", "-Ccodegen-units=1", "--emit", emit]).args(flags);
    for library in ["vdso_time", "vdso_time_trace"] {
        let file = release.join(format!("lib{library}.rlib"));
        command.arg("--extern").arg(format!("{library}={}", file.display()));
    }
    command.arg("-L").arg(format!("dependency={}", release.join("deps").display()));
    command.arg("-o").arg(&built).arg(package().join("tests/support").join(format!("{source}.rs")));
    output(&mut command)?;
    Ok(built)
}
