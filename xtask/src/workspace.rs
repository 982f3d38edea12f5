//! The root of the workspace, its target directory, cargo, and the cache.

use std::env;
use std::ffi::OsString;
use std::path::{self, Path, PathBuf};

use anyhow::{Context as _, Result};
use fs_err as fs;
use serde_json::Value;
use xshell::{Cmd, Shell, cmd};

/// The version of all packages.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns the root of the workspace: the parent of this package.
pub(crate) fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_path_buf()
}

/// Returns a shell at the root.
pub(crate) fn shell() -> Result<Shell> {
    let sh = Shell::new()?;
    sh.change_dir(root());
    Ok(sh)
}

/// Returns the cargo that runs us. It has a path, so no proxy chooses another one.
pub(crate) fn cargo(sh: &Shell) -> Cmd<'_> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    cmd!(sh, "{cargo}").quiet()
}

/// Returns cargo's target directory.
pub(crate) fn target() -> PathBuf {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(directory) if !directory.is_empty() => {
            path::absolute(&directory).unwrap_or_else(|_| directory.into())
        }
        _ => root().join("target"),
    }
}

/// Returns the directory `vdso-time` of the user's cache.
pub(crate) fn cache() -> Result<PathBuf> {
    let base = match env::var_os("XDG_CACHE_HOME") {
        Some(base) if Path::new(&base).is_absolute() => PathBuf::from(base),
        _ => {
            let home = env::var_os("HOME").context("HOME is not set")?;
            Path::new(&home).join(".cache")
        }
    };
    Ok(base.join("vdso-time"))
}

/// Returns the paths in a directory, sorted.
pub(crate) fn entries(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory)? {
        paths.push(entry?.path());
    }
    paths.sort();
    Ok(paths)
}

/// Prints a message about the current step.
pub(crate) fn step(message: &str) {
    eprintln!("xtask: {message}");
}

/// Returns the packages that `cargo metadata` lists; without arguments, also all dependencies.
pub(crate) fn packages(sh: &Shell, arguments: &[&str]) -> Result<Vec<Value>> {
    let metadata = cargo(sh).args(["metadata", "--format-version=1"]);
    let metadata: Value = serde_json::from_str(&metadata.args(arguments).read()?)?;
    let packages = metadata["packages"].as_array();
    Ok(packages
        .context("cargo metadata lists no packages")?
        .clone())
}
