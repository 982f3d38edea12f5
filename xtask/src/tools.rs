//! Programs from crates.io, in the cache.

use std::path::PathBuf;

use anyhow::Result;

use crate::workspace::{self, step};

/// Installs the program of the package `name` and returns its path. It runs for seconds, so it is
/// not optimised.
pub(crate) fn from_crates_io(name: &str, version: &str) -> Result<PathBuf> {
    let directory = workspace::cache()?.join(format!("{name}-{version}"));
    let program = directory.join("bin").join(name);
    if !program.exists() {
        step(&format!("installing {name} {version} (some minutes)"));
        let sh = workspace::shell()?;
        workspace::cargo(&sh)
            .args(["install", "--quiet", "--debug", "--locked", name])
            .arg(format!("--version={version}"))
            .arg("--root")
            .arg(directory)
            .run()?;
    }
    Ok(program)
}
