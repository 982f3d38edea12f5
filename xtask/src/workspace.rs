//! The root of the workspace, its target folder, and cargo.

use std::env;
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
    let metadata = cargo(sh).args(["metadata", "--format-version=1"]).args(arguments).read()?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    Ok(metadata["packages"].as_array().context("cargo metadata lists no packages")?.clone())
}

/// cargo's folder of the user.
pub(crate) fn cargo_home() -> Result<PathBuf> {
    let named = env::var_os("CARGO_HOME").map(PathBuf::from);
    let usual = || env::var_os("HOME").map(|home| Path::new(&home).join(".cargo"));
    named.or_else(usual).context("neither CARGO_HOME nor HOME is set")
}

#[cfg(test)]
mod tests {
    use super::root;

    /// Looks for `-p`, because cargo unifies the features of all packages that a command builds,
    /// and of their dev-dependencies: without it, features come back.
    #[test]
    fn a_command_of_ci_that_leaves_features_out_names_the_package() {
        let text = [".ci/run", ".github/workflows/ci.yml", "CONTRIBUTING.md"]
            .map(|file| std::fs::read_to_string(root().join(file)).unwrap())
            .concat();
        let lines =
            text.lines().filter(|line| line.contains("cargo ") && line.contains("--no-default-features"));
        assert!(lines.clone().count() > 3 && lines.clone().all(|line| line.contains(" -p ")), "{text}");
    }
}
