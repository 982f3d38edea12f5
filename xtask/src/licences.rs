//! `cargo xtask licences`: cargo-deny with `deny.toml`, for every package with a lock file. Only
//! `--advisories` needs the network, so the job of CI that runs for each change leaves it out.

use std::process::ExitCode;

use anyhow::Result;
use xshell::cmd;

use crate::{tools, workspace};

pub(crate) fn run(advisories: bool) -> Result<ExitCode> {
    let deny = tools::from_crates_io("cargo-deny", "0.20.2")?;
    let sh = workspace::shell()?;
    for lock in cmd!(sh, "git ls-files *Cargo.lock").quiet().read()?.lines() {
        println!("{lock}");
        let manifest = lock.replace(".lock", ".toml");
        cmd!(
            sh,
            "{deny} --locked --workspace --config deny.toml --manifest-path {manifest} check"
        )
        .args(["--hide-inclusion-graph", "bans", "licenses", "sources"])
        .args(if advisories { &["advisories"][..] } else { &[] })
        .quiet()
        .run()?;
    }
    Ok(ExitCode::SUCCESS)
}
