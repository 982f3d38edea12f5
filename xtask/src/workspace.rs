//! Where the workspace lies, and the cargo that runs us.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The library, as Cargo names it.
pub(crate) const LIBRARY: &str = "vdso-time";

/// The root of the workspace: the parent of this package.
pub(crate) fn root() -> PathBuf {
    // Cargo tells where the package is now; the path seen while compiling may have moved since.
    let package = env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    package.parent().map(Path::to_path_buf).unwrap_or(package)
}

/// cargo's folder for what is built, as cargo's own variable has it.
pub(crate) fn target() -> PathBuf {
    let named = env::var_os("CARGO_TARGET_DIR").filter(|folder| !folder.is_empty());
    // A relative one is relative to the folder in which cargo was started, which is ours too.
    let named = named.and_then(|folder| std::path::absolute(folder).ok());
    named.unwrap_or_else(|| root().join("target"))
}

/// The cargo that runs us, by its own path: no proxy can choose another one.
pub(crate) fn cargo() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}
