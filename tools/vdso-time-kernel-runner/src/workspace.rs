//! The cargo that started this program, the programs of a package, and the target directory.

use std::env;
use std::ffi::OsString;
use std::path::{self, Path, PathBuf};

use serde_json::Value;
use xshell::{Cmd, Shell, cmd};

use crate::cache;

/// Returns cargo's target directory for the package of the working directory. If there is no
/// package, returns a directory in the cache, in which the runner then builds the guests' init
/// program.
pub(crate) fn target() -> PathBuf {
    let named = env::var_os("CARGO_TARGET_DIR").unwrap_or_default();
    if !named.is_empty() {
        return path::absolute(&named).unwrap_or_else(|_| named.into());
    }
    let metadata = metadata(&["--no-deps"]);
    if let Some(directory) = metadata["target_directory"].as_str() {
        return directory.into();
    }
    let cache = cache::directory().unwrap_or_default();
    cache.join("target")
}

/// Returns the names of the programs of the package in this directory. If the directory contains a
/// workspace, returns the names for all its packages.
pub(crate) fn programs(directory: &Path) -> Vec<String> {
    let manifest = directory.join("Cargo.toml");
    if !manifest.is_file() {
        return Vec::new();
    }
    let path = format!("--manifest-path={}", manifest.display());
    let metadata = metadata(&["--no-deps", "--offline", &path]);
    let mut names = Vec::new();
    for package in elements(&metadata["packages"]) {
        let path = package["manifest_path"].as_str().unwrap_or_default();
        if !Path::new(path).starts_with(directory) {
            continue;
        }
        for target in elements(&package["targets"]) {
            if target["kind"][0] != "bin" {
                continue;
            }
            if let Some(name) = target["name"].as_str() {
                names.push(name.to_owned());
            }
        }
    }
    names
}

/// Returns the elements of an array, or none.
fn elements(value: &Value) -> &[Value] {
    match value.as_array() {
        Some(elements) => elements,
        None => &[],
    }
}

/// Returns what `cargo metadata` prints, or null if it fails.
fn metadata(arguments: &[&str]) -> Value {
    try_metadata(arguments).unwrap_or_default()
}

fn try_metadata(arguments: &[&str]) -> anyhow::Result<Value> {
    let sh = Shell::new()?;
    let cargo = cargo(&sh).args(["metadata", "--format-version=1"]);
    let text = cargo.args(arguments).ignore_stderr().read()?;
    Ok(serde_json::from_str(&text)?)
}

/// Returns the cargo that started this program, whose path is in `CARGO`. If that variable is not
/// set, returns the cargo in PATH. `CARGO` has the path of cargo itself, and not of rustup's proxy,
/// which could choose another toolchain.
pub(crate) fn cargo(sh: &Shell) -> Cmd<'_> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    cmd!(sh, "{cargo}").quiet()
}

#[cfg(test)]
mod tests {
    use fs_err as fs;

    use super::*;

    #[test]
    fn a_workspace_has_the_programs_of_its_packages_and_a_package_only_its_own() {
        let name = format!("workspace-{}", std::process::id());
        let root = env::temp_dir().join(name);
        for package in ["one", "two"] {
            let manifest = format!("[package]\nname = '{package}'\nedition = '2024'\n");
            fs::create_dir_all(root.join(package).join("src")).unwrap();
            fs::write(root.join(package).join("Cargo.toml"), manifest).unwrap();
            fs::write(root.join(package).join("src/main.rs"), "fn main() {}").unwrap();
        }
        let members = "[workspace]\nmembers = ['one', 'two']\nresolver = '3'\n";
        fs::write(root.join("Cargo.toml"), members).unwrap();
        let of_workspace = programs(&root);
        let of_package = programs(&root.join("one"));
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(of_workspace, ["one", "two"]);
        assert_eq!(of_package, ["one"]);
    }
}
