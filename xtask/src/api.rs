//! `cargo xtask api`: compares the public API with its listing in `docs/public-api.txt`.
//!
//! `cargo-public-api` makes the listing from rustdoc's JSON, whose format changes with nearly every
//! release. So both versions are fixed: rustdoc is that of the oldest supported compiler.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail, ensure};
use fs_err as fs;
use xshell::{Shell, cmd};

use crate::toolchain::Compiler;
use crate::{cache, step, workspace};

const TOOL: &str = "cargo-public-api";

/// The last version that reads the JSON of rustdoc 1.85: format 37 adds one field to its format 36.
const TOOL_VERSION: &str = "0.42.0";

/// The API of one target, whatever machine lists it.
const TARGET: &str = "x86_64-unknown-linux-gnu";

const LISTING: &str = "docs/public-api.txt";

pub(crate) fn run(write: bool) -> Result<ExitCode> {
    let sh = workspace::shell()?;
    let json = rustdoc_json(&sh)?;
    let new = listing(&sh, &tool(&sh)?, &json)?;
    let file = if write { workspace::root().join(LISTING) } else { json.with_file_name("public-api.txt") };
    fs::write(&file, new)?;
    let diff = cmd!(sh, "git --no-pager diff --no-index --unified=0 -- {LISTING} {file}").quiet();
    if !write && diff.run().is_err() {
        bail!(
            "the public API differs from {LISTING}; if the change is intended, run \
             `cargo xtask api --write` and describe it in CHANGELOG.md"
        );
    }
    println!("{LISTING} lists the public API");
    Ok(ExitCode::SUCCESS)
}

/// The listing tool, installed into the cache the first time.
fn tool(sh: &Shell) -> Result<PathBuf> {
    let folder = cache::folder()?.join(format!("{TOOL}-{TOOL_VERSION}"));
    cache::build_once(&folder, |draft| {
        step(&format!("installing {TOOL} {TOOL_VERSION} (one or two minutes)"));
        let cargo = workspace::cargo(sh).args(["install", "--quiet", "--locked", TOOL, "--version"]);
        Ok(cargo.arg(format!("={TOOL_VERSION}")).arg("--root").arg(draft).run()?)
    })?;
    Ok(folder.join("bin").join(TOOL))
}

fn rustdoc_json(sh: &Shell) -> Result<PathBuf> {
    let folder = "api";
    // Stable compilers write JSON only if told to act as nightly.
    let cargo = Compiler::oldest()?.cargo(sh, folder).env("RUSTC_BOOTSTRAP", "1");
    let cargo = cargo.args(["rustdoc", "--quiet", "--lib", "--all-features", "--package", "vdso-time"]);
    let cargo = cargo.args(["--target", TARGET, "--", "-Z", "unstable-options", "--output-format", "json"]);
    cargo.args(["--cap-lints", "allow"]).run()?;
    Ok(workspace::target().join(folder).join(TARGET).join("doc/vdso_time.json"))
}

/// All items by path, without blanket and auto trait impls. A derived impl is one line, without its
/// methods.
fn listing(sh: &Shell, tool: &Path, json: &Path) -> Result<String> {
    let list = |omitted| {
        let listing = cmd!(sh, "{tool} public-api --rustdoc-json {json} --color never --omit {omitted}");
        listing.quiet().read()
    };
    let written = list("blanket-impls,auto-trait-impls,auto-derived-impls")?;
    let with_derived = list("blanket-impls,auto-trait-impls")?;
    let mut written = written.lines().peekable();
    let mut text = String::new();
    for line in with_derived.lines() {
        let is_derived_impl = line.starts_with("impl") && !line.contains("StructuralPartialEq");
        if written.next_if_eq(&line).is_some() || is_derived_impl {
            text.extend([line, "\n"]);
        }
    }
    ensure!(written.peek().is_none(), "{TOOL} lists {:?} in two places", written.peek());
    Ok(text)
}
