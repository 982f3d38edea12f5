//! Debian's Rust of the oldest supported version, which the runner fetches.

use xshell::{Cmd, Shell};

use anyhow::Result;

use crate::{runner, workspace};

pub(crate) struct Rust {
    /// The variables with which cargo uses it.
    variables: Vec<(String, String)>,
}

impl Rust {
    /// Returns the compiler, with the standard library for these targets.
    pub(crate) fn oldest(targets: &[&str]) -> Result<Self> {
        let mut command = runner::command("rust")?;
        command.args(targets);
        Ok(Self::new(&runner::read(&mut command)?))
    }

    /// Returns the compiler, with these crates of the standard library as far as `cargo check`
    /// needs them.
    pub(crate) fn to_check(crates: &str, targets: &[&str]) -> Result<Self> {
        let mut command = runner::command("rust")?;
        command.args(["--check", crates]).args(targets);
        Ok(Self::new(&runner::read(&mut command)?))
    }

    /// Reads lines `NAME=VALUE`.
    fn new(lines: &str) -> Self {
        let mut variables = Vec::new();
        for line in lines.lines() {
            if let Some((name, value)) = line.split_once('=') {
                variables.push((name.to_owned(), value.to_owned()));
            }
        }
        Self { variables }
    }

    /// Returns a variable's value, or an empty text.
    pub(crate) fn get(&self, name: &str) -> &str {
        for (variable, value) in &self.variables {
            if variable == name {
                return value;
            }
        }
        ""
    }

    /// Returns the installed cargo, with this compiler and a directory of the target directory that
    /// no other compiler uses.
    pub(crate) fn cargo<'a>(&self, sh: &'a Shell, directory: &str) -> Cmd<'a> {
        let cargo = workspace::cargo(sh)
            // A wrapper could call another compiler. Empty means none, whatever is configured.
            .env("RUSTC_WRAPPER", "")
            .env("RUSTC_WORKSPACE_WRAPPER", "")
            .env_remove("RUSTC_BOOTSTRAP")
            .env("CARGO_TARGET_DIR", workspace::target().join(directory));
        let variables = self.variables.iter();
        cargo.envs(variables.map(|(name, value)| (name, value)))
    }

    /// Returns [`cargo`](Self::cargo) with Clippy for the packages of the workspace.
    pub(crate) fn clippy<'a>(&self, sh: &'a Shell, directory: &str) -> Cmd<'a> {
        let cargo = self.cargo(sh, directory);
        cargo.env("RUSTC_WORKSPACE_WRAPPER", self.get("CLIPPY_DRIVER"))
    }
}
