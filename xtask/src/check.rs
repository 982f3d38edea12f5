//! `cargo xtask check`: type-checks and lints the library for every target of `check.toml`. A
//! warning is a failure.

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::rust::Rust;
use crate::workspace;

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
struct Table {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Group {
    targets: Vec<&'static str>,
    build_std: Option<&'static str>,
    checks: Vec<&'static str>,
}

pub(crate) fn run(names: &[String]) -> Result<ExitCode> {
    let Table { mut groups } = basic_toml::from_str(include_str!("check.toml"))?;
    for group in &mut groups {
        group.targets.retain(|triple| is_chosen(triple, names));
    }
    groups.retain(|group| !group.targets.is_empty());
    if groups.is_empty() {
        bail!(
            "no target's name contains `{}`; `cargo xtask check` lists the targets",
            names.join("` or `")
        );
    }
    for group in &groups {
        group.check()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns whether a target's name contains one of these words, if there are any.
fn is_chosen(triple: &str, words: &[String]) -> bool {
    words.is_empty() || words.iter().any(|word| triple.contains(&**word))
}

impl Group {
    fn check(&self) -> Result<()> {
        // On WASM, this version of clippy does not see a `const`.
        let mut flags = "-Dwarnings -Aclippy::missing_const_for_thread_local".to_owned();
        let rust = match self.build_std {
            Some(crates) => {
                let rust = Rust::to_check(crates, &self.targets)?;
                flags += " --sysroot=";
                flags += rust.get("CHECK_SYSROOT");
                rust
            }
            None => Rust::oldest(&self.targets)?,
        };
        let sh = workspace::shell()?;
        println!("{}", self.targets.join(" "));
        for check in &self.checks {
            println!("    {check}");
            let mut cargo = rust.clippy(&sh, "check").env("RUSTFLAGS", &flags);
            cargo = cargo.args(["check", "--quiet"]).args(check.split(' '));
            for triple in &self.targets {
                cargo = cargo.args(["--target", triple]);
            }
            cargo
                .run()
                .context("`cargo xtask check TARGET` checks one target alone")?;
        }
        Ok(())
    }
}
