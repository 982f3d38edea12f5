//! The cargo that runs us, and its target folder.

use std::env;
use std::ffi::OsString;
use std::path::{self, PathBuf};

use serde_json::Value;
use xshell::{Cmd, Shell, cmd};

/// cargo's target folder for the package of the working folder.
pub fn target() -> PathBuf {
    if let Some(folder) = env::var_os("CARGO_TARGET_DIR").filter(|folder| !folder.is_empty()) {
        return path::absolute(&folder).unwrap_or_else(|_| folder.into());
    }
    let metadata = Shell::new().and_then(|sh| {
        cargo(&sh)
            .args(["metadata", "--no-deps", "--format-version=1"])
            .ignore_stderr()
            .read()
    });
    let metadata: Value = metadata
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    metadata["target_directory"]
        .as_str()
        .unwrap_or("target")
        .into()
}

/// Returns the cargo that runs us, by its own path, so that no proxy chooses another one.
pub fn cargo(sh: &Shell) -> Cmd<'_> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    cmd!(sh, "{cargo}").quiet()
}
