//! The root of the workspace, its target folder, and cargo.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::Value;
pub(crate) use vdso_time_kernel_runner::workspace::{cargo, target};
use xshell::Shell;

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

/// Returns the packages that `cargo metadata` lists; without arguments, also all dependencies.
pub(crate) fn packages(sh: &Shell, arguments: &[&str]) -> Result<Vec<Value>> {
    let metadata = cargo(sh)
        .args(["metadata", "--format-version=1"])
        .args(arguments)
        .read()?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    Ok(metadata["packages"]
        .as_array()
        .context("cargo metadata lists no packages")?
        .clone())
}
