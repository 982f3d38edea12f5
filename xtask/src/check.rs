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
    for group in chosen(names)? {
        group.check()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the groups of the table, with the targets whose names contain one of these words, or
/// with all targets if there are no words.
fn chosen(words: &[String]) -> Result<Vec<Group>> {
    let Table { mut groups } = basic_toml::from_str(include_str!("check.toml"))?;
    for word in words {
        let mut targets = groups.iter().flat_map(|group| &group.targets);
        if !targets.any(|triple| triple.contains(&**word)) {
            bail!("no target's name contains `{word}`; xtask/src/check.toml lists the targets");
        }
    }
    for group in &mut groups {
        group.targets.retain(|triple| is_chosen(triple, words));
    }
    groups.retain(|group| !group.targets.is_empty());
    Ok(groups)
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
                flags += rust.get("CHECK_SYSROOT")?;
                rust
            }
            None => Rust::oldest(&self.targets)?,
        };
        let sh = workspace::shell()?;
        println!("{}", self.targets.join(" "));
        for check in &self.checks {
            println!("    {check}");
            let mut cargo = rust.clippy(&sh, "check")?.env("RUSTFLAGS", &flags);
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

#[cfg(test)]
mod tests {
    use super::chosen;

    #[test]
    fn each_name_must_be_part_of_a_targets_name() {
        let targets = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            let mut targets = Vec::new();
            for group in chosen(&words)? {
                targets.extend(group.targets);
            }
            anyhow::Ok(targets)
        };
        assert_eq!(targets(&["s390x"]).unwrap(), ["s390x-unknown-linux-gnu"]);
        assert!(targets(&[]).unwrap().len() > 20);
        let error = targets(&["s390x", "s390y"]).unwrap_err().to_string();
        assert!(error.contains("`s390y`"), "{error}");
    }
}
