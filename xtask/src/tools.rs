//! Programs from crates.io, in the cache.

use std::path::PathBuf;

use anyhow::Result;
use vdso_time_kernel_runner::{cache, step};
use xshell::Shell;

use crate::workspace;

/// Installs the program of the package `name` and returns its path. It runs for seconds, so it is
/// not optimised.
pub(crate) fn from_crates_io(name: &str, version: &str) -> Result<PathBuf> {
    let folder = cache::folder()?.join(format!("{name}-{version}"));
    cache::build_once(&folder, |draft| {
        step(&format!("installing {name} {version} (some minutes)"));
        let sh = Shell::new()?;
        let cargo = workspace::cargo(&sh).args([
            "install",
            "--quiet",
            "--debug",
            "--locked",
            name,
            "--version",
        ]);
        Ok(cargo
            .arg(format!("={version}"))
            .arg("--root")
            .arg(draft)
            .run()?)
    })?;
    Ok(folder.join("bin").join(name))
}
