//! `cargo xtask licences`: cargo-deny with `deny.toml`, for every package with a lock file. The
//! check for advisories needs the network: a release and the weekly job of CI make it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use xshell::{Cmd, Shell, cmd};

use crate::{tools, workspace};

pub(crate) fn run() -> Result<ExitCode> {
    let (deny, sh) = (deny()?, workspace::shell()?);
    for lock in locks(&sh)? {
        println!("{lock}");
        check(&sh, &deny, &lock).args(["bans", "licenses", "sources"]).run()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Compares every lock file with RustSec's database.
pub(crate) fn advisories(sh: &Shell) -> Result<String> {
    let (deny, locks) = (deny()?, locks(sh)?);
    let fetch = cmd!(sh, "{deny} --config deny.toml fetch db").quiet().run();
    fetch.context("cannot fetch RustSec's database: this check needs github.com")?;
    let has_any = |lock: &&String| check(sh, &deny, lock).arg("advisories").run().is_err();
    let found: Vec<_> = locks.iter().filter(has_any).map(|lock| &**lock).collect();
    ensure!(found.is_empty(), "update the dependency, or ignore it in deny.toml: {}", found.join(", "));
    Ok(format!("{} lock files", locks.len()))
}

fn deny() -> Result<PathBuf> {
    tools::from_crates_io("cargo-deny", "0.20.2")
}

fn locks(sh: &Shell) -> Result<Vec<String>> {
    Ok(cmd!(sh, "git ls-files *Cargo.lock").quiet().read()?.lines().map(Into::into).collect())
}

/// The command, without the names of the checks.
fn check<'a>(sh: &'a Shell, deny: &Path, lock: &str) -> Cmd<'a> {
    let manifest = lock.replace(".lock", ".toml");
    let deny = cmd!(sh, "{deny} --locked --workspace --config deny.toml --manifest-path {manifest} check");
    deny.arg("--hide-inclusion-graph").quiet()
}
