//! The root of the workspace, its target folder, and cargo.

use std::path::{Path, PathBuf};

use anyhow::Result;
pub(crate) use vdso_time_kernel_runner::workspace::{cargo, target};
use xshell::Shell;

/// The root of the workspace: the parent of this package.
pub(crate) fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_path_buf()
}

/// A shell at the root.
pub(crate) fn shell() -> Result<Shell> {
    let sh = Shell::new()?;
    sh.change_dir(root());
    Ok(sh)
}
