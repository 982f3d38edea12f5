//! `cargo xtask licences`: every package comes from crates.io, under a licence that `deny.toml` allows.
//!
//! cargo-deny checks the same with the same file, but takes five minutes of CPU time to build.

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use fs_err as fs;
use serde_json::Value;
use spdx::{Expression, ParseMode};
use xshell::Shell;

use crate::workspace;

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

pub(crate) fn run() -> Result<ExitCode> {
    let root = workspace::root();
    let allowed = allowed(&fs::read_to_string(root.join("deny.toml"))?)?;
    let sh = Shell::new()?;
    let mut refused = BTreeSet::new();
    for lock in workspace::files("*Cargo.lock")? {
        let manifest = root.join(&lock).with_file_name("Cargo.toml");
        let cargo =
            workspace::cargo(&sh).args(["metadata", "--format-version", "1", "--all-features", "--locked"]);
        let metadata: Value = serde_json::from_str(&cargo.arg("--manifest-path").arg(manifest).read()?)?;
        let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
        let faults = packages.iter().filter_map(|package| fault(package, &allowed));
        refused.extend(faults.map(|fault| format!("{lock}: {fault}")));
        println!("{lock}: {} packages", packages.len());
    }
    for line in &refused {
        println!("not allowed: {line}");
    }
    Ok(ExitCode::from(u8::from(!refused.is_empty())))
}

/// The licences that cargo-deny's file allows.
fn allowed(text: &str) -> Result<Vec<String>> {
    let file: toml::Table = toml::from_str(text).context("deny.toml")?;
    let licences = file.get("licenses").and_then(|licenses| licenses.get("allow"));
    let licences = licences.and_then(toml::Value::as_array).context("deny.toml allows no licences")?;
    Ok(licences.iter().filter_map(|licence| licence.as_str().map(String::from)).collect())
}

/// What is wrong with a package of `cargo metadata`.
fn fault(package: &Value, allowed: &[String]) -> Option<String> {
    let name = &package["name"];
    let source = package["source"].as_str();
    if source.is_some_and(|source| source != CRATES_IO) {
        return Some(format!("{name} comes from {}", package["source"]));
    }
    let Some(licence) = package["license"].as_str() else {
        // A package of this repository that is not published needs no licence.
        return source.is_some().then(|| format!("{name} names no licence"));
    };
    let expression = Expression::parse_mode(licence, ParseMode::LAX);
    let is_allowed = expression.is_ok_and(|expression| {
        expression.evaluate(|requirement| allowed.contains(&requirement.to_string()))
    });
    (!is_allowed).then(|| format!("{name} has the licence {licence}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{CRATES_IO, allowed, fault};

    #[test]
    fn a_package_needs_an_allowed_licence_and_crates_io() {
        let allowed = allowed("[licenses]\nallow = [\"MIT\", \"Apache-2.0\"]\n").unwrap();
        for (source, licence, is_allowed) in [
            (Some(CRATES_IO), Some("MIT/GPL-3.0"), true),
            (Some(CRATES_IO), Some("GPL-3.0 OR (MIT AND Apache-2.0)"), true),
            (Some(CRATES_IO), Some("GPL-3.0-only AND MIT"), false),
            (Some(CRATES_IO), Some("Apache-2.0 WITH LLVM-exception"), false),
            (Some(CRATES_IO), None, false),
            (Some("git+https://example.org/plain#1234"), Some("MIT"), false),
            (None, None, true),
        ] {
            let package = json!({"name": "x", "source": source, "license": licence});
            assert_eq!(fault(&package, &allowed).is_none(), is_allowed, "{package}");
        }
    }

    #[test]
    fn a_file_that_allows_nothing_is_an_error() {
        for text in ["", "licenses = 1", "[licenses]\nallow = 1"] {
            assert!(allowed(text).is_err(), "{text}");
        }
    }
}
