//! The programs that cargo builds for a machine.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::Value;
use xshell::{Cmd, Shell};

use crate::machine::{Machine, Runner};
use crate::matrix_table::{NATIVE_ONLY, SKIPPED};
use crate::setup::Setup;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Program {
    pub(crate) path: String,
    /// The working folder: that of its package.
    pub(crate) folder: PathBuf,
    pub(crate) arguments: Vec<String>,
}

impl Program {
    /// Its name, without the hash that cargo adds.
    pub(crate) fn name(&self) -> &str {
        let file = Path::new(&self.path).file_name().and_then(|name| name.to_str()).unwrap_or_default();
        file.rsplit_once('-').filter(|(_, hash)| hash.len() == 16).map_or(file, |(name, _)| name)
    }
}

/// The test programs that `cargo test` with these options builds, except those that are not run on
/// the machine.
pub(crate) fn tests(
    machine: &Machine,
    setup: &Setup,
    options: &[String],
    arguments: &[String],
) -> Result<Vec<Program>> {
    let sh = Shell::new()?;
    let mut programs = executables(setup.cargo(&sh).args(["test", "--no-run"]).args(options), true)?;
    programs.sort_by_cached_key(|program| (program.folder.clone(), program.name().to_owned()));
    if machine.runner != Runner::Native {
        programs.retain(|program| !NATIVE_ONLY.contains(&program.name()));
    }
    let name = machine.to_string();
    let skipped =
        SKIPPED.iter().filter(|(prefixes, _)| prefixes.iter().any(|prefix| name.starts_with(prefix)));
    let skips = skipped.flat_map(|(_, tests)| *tests).flat_map(|test| ["--skip".into(), test.to_string()]);
    let arguments: Vec<String> = arguments.iter().cloned().chain(skips).collect();
    for program in &mut programs {
        program.arguments.clone_from(&arguments);
    }
    Ok(programs)
}

/// Runs cargo, and returns the programs that it built: tests, or the others.
pub(crate) fn executables(cargo: Cmd<'_>, are_tests: bool) -> Result<Vec<Program>> {
    let messages = cargo.arg("--message-format=json-render-diagnostics").read()?;
    Ok(messages.lines().filter_map(|message| executable(message, are_tests)).collect())
}

fn executable(message: &str, is_test: bool) -> Option<Program> {
    let message: Value = serde_json::from_str(message).ok()?;
    let path = message["executable"].as_str()?.to_owned();
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_path_buf();
    (message["profile"]["test"] == is_test).then(|| Program { path, folder, arguments: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::executable;

    #[test]
    fn a_message_of_cargo_names_the_program_and_its_package() {
        let message = r#"{"reason":"compiler-artifact","manifest_path":"/a b/Cargo.toml","target":{"name":"x"},
            "profile":{"test":true},"executable":"/t/live-8f01a2b3c4d5e6f7","fresh":true}"#;
        let found = executable(message, true).unwrap();
        assert_eq!((found.name(), found.folder.to_str()), ("live", Some("/a b")));
        assert_eq!(executable(message, false), None);
        assert_eq!(executable(r#"{"manifest_path":"/a/Cargo.toml","executable":null}"#, true), None);
    }
}
