//! `cargo xtask check`: type-checks and lints the library for every target of `check.toml`. A
//! warning is a failure.

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use vdso_time_kernel_runner::targets::TARGETS;
use vdso_time_kernel_runner::toolchain::Compiler;

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
    let is_named =
        |triple: &&str| names.is_empty() || names.iter().any(|name| triple.contains(&**name));
    let Table { mut groups } = basic_toml::from_str(include_str!("check.toml"))?;
    groups[0]
        .targets
        .extend(TARGETS.arches.iter().map(|arch| arch.triple));
    groups[0].targets.dedup();
    for group in &mut groups {
        group.targets.retain(is_named);
    }
    groups.retain(|group| !group.targets.is_empty());
    if groups.is_empty() {
        bail!(
            "no target's name contains `{}`; `cargo xtask check` prints all of them",
            names.join("` or `")
        );
    }
    let compiler = Compiler::oldest()?;
    let sh = workspace::shell()?;
    for Group {
        targets,
        build_std,
        checks,
    } in &groups
    {
        // On WASM, this version of clippy does not see a `const`.
        let mut flags = vec!["-Dwarnings -Aclippy::missing_const_for_thread_local".to_owned()];
        match build_std {
            Some(crates) => {
                let sysroot = compiler.sysroot_to_check(targets, crates)?;
                flags.push(format!("--sysroot={}", sysroot.display()));
            }
            None => targets
                .iter()
                .try_for_each(|triple| compiler.add_std(triple))?,
        }
        println!("{}", targets.join(" "));
        for check in checks {
            println!("    {check}");
            let cargo = compiler
                .clippy(&sh, "check")
                .env("RUSTFLAGS", flags.join(" "))
                .args(["check", "--quiet"]);
            let cargo = cargo.args(check.split(' '));
            let cargo = targets
                .iter()
                .fold(cargo, |cargo, triple| cargo.args(["--target", triple]));
            cargo
                .run()
                .context("`cargo xtask check TARGET` checks one target alone")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
