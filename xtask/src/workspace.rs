//! The folders of the workspace, and the cargo that runs us.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Result;
use xshell::{Cmd, Shell, cmd};

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

/// cargo's target folder. `CARGO_TARGET_DIR` is relative to where cargo was started, as we were.
pub(crate) fn target() -> PathBuf {
    let named = env::var_os("CARGO_TARGET_DIR").filter(|folder| !folder.is_empty());
    named.and_then(|folder| std::path::absolute(folder).ok()).unwrap_or_else(|| root().join("target"))
}

/// The cargo that runs us, by its own path, so that no proxy chooses another one.
pub(crate) fn cargo(sh: &Shell) -> Cmd<'_> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    cmd!(sh, "{cargo}").quiet()
}
