//! Debian's Rust of the oldest supported version, which the runner fetches.

use xshell::{Cmd, Shell};

use anyhow::{Result, bail};

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

    /// Returns a variable's value.
    pub(crate) fn get(&self, name: &str) -> Result<&str> {
        for (variable, value) in &self.variables {
            if variable == name {
                return Ok(value);
            }
        }
        bail!("the runner printed no {name}")
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
    pub(crate) fn clippy<'a>(&self, sh: &'a Shell, directory: &str) -> Result<Cmd<'a>> {
        let clippy = self.get("CLIPPY_DRIVER")?;
        let cargo = self.cargo(sh, directory);
        Ok(cargo.env("RUSTC_WORKSPACE_WRAPPER", clippy))
    }
}

#[cfg(test)]
mod tests {
    use super::Rust;
    use crate::workspace;

    #[test]
    fn without_clippy_nothing_is_linted_and_that_is_an_error() {
        let sh = workspace::shell().unwrap();
        let rust = Rust::new("RUSTC=/rustc\nCLIPPY_DRIVER=/clippy=driver\n");
        assert_eq!(rust.get("CLIPPY_DRIVER").unwrap(), "/clippy=driver");
        assert!(rust.clippy(&sh, "check").is_ok());

        let rust = Rust::new("RUSTC=/rustc\n");
        let error = rust.clippy(&sh, "check").unwrap_err().to_string();
        assert_eq!(error, "the runner printed no CLIPPY_DRIVER");
    }
}
