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

#[cfg(test)]
mod tests {
    use super::root;

    /// cargo unifies the features of the packages that a command builds, and of their
    /// dev-dependencies. So only one with `-p` leaves features out.
    #[test]
    fn a_command_of_ci_that_leaves_features_out_names_the_package() {
        let mut count = 0;
        for file in [".ci/run", ".github/workflows/ci.yml", "CONTRIBUTING.md", "README.md"] {
            let text = std::fs::read_to_string(root().join(file)).unwrap();
            for line in text.lines().filter(|line| line.contains("cargo ")) {
                if line.contains("--no-default-features") {
                    count += 1;
                    assert!(line.contains(" -p "), "{file}: {line}");
                }
            }
        }
        assert!(count > 3, "{count}");
    }
}
