//! `cargo xtask api`: the public API, one line per item, kept in `public-api.txt`.
//!
//! The listing is made by `cargo-public-api` from what rustdoc tells in JSON. That format changes
//! with nearly every release, so both are fixed: rustdoc is that of the oldest supported compiler.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::diff::diff;
use crate::process::{stdout, step};
use crate::toolchain::Compiler;
use crate::{Error, cache, unknown_argument, workspace};

const TOOL: &str = "cargo-public-api";

/// Reads the JSON of rustdoc 1.85, format 37, which has but one field more than format 36, the one
/// this version was made for. The next version wants format 39, where fields have other names.
const TOOL_VERSION: &str = "0.42.0";

/// The API is that of one target, whatever machine lists it.
const TARGET: &str = "x86_64-unknown-linux-gnu";

const LISTING: &str = "public-api.txt";

pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, Error> {
    let write = match arguments {
        [] => false,
        [one] if one == "--write" => true,
        [first, rest @ ..] => {
            let extra = rest.first().filter(|_| first == "--write");
            return Err(unknown_argument(extra.unwrap_or(first)));
        }
    };
    let new = listing(&tool()?, &rustdoc_json(&Compiler::find()?)?)?;
    let file = workspace::root().join(LISTING);
    if write {
        cache::write(&file, &new)?;
        return Ok(ExitCode::SUCCESS);
    }
    Ok(compare(&file, &new)?)
}

fn compare(file: &Path, new: &str) -> Result<ExitCode, String> {
    let old = if file.exists() {
        fs::read_to_string(file).map_err(|error| cache::at(file, &error))?
    } else {
        String::new()
    };
    if old == new {
        println!("the public API is as {LISTING} says");
        return Ok(ExitCode::SUCCESS);
    }
    let changes = diff(&old.lines().collect::<Vec<_>>(), &new.lines().collect::<Vec<_>>());
    for line in &changes {
        println!("{line}");
    }
    if changes.is_empty() {
        println!("(the same lines, in another order or number)");
    }
    Err(format!(
        "the public API is not as {LISTING} says; \
         if the change is meant, accept it with `cargo xtask api --write` and tell of it in CHANGELOG.md"
    ))
}

/// The listing tool, installed into the cache the first time.
fn tool() -> Result<PathBuf, String> {
    let folder = cache::folder()?.join(format!("{TOOL}-{TOOL_VERSION}"));
    cache::build_once(&folder, |draft| {
        step(&format!("installing {TOOL} {TOOL_VERSION} (a minute or two)"));
        let version = format!("={TOOL_VERSION}");
        stdout(
            Command::new(workspace::cargo())
                .args(["install", "--quiet", "--locked", TOOL])
                .args(["--version", &version])
                .arg("--root")
                .arg(draft),
        )
        .map(drop)
    })?;
    Ok(folder.join("bin").join(TOOL))
}

fn rustdoc_json(compiler: &Compiler) -> Result<PathBuf, String> {
    let target_folder = "api";
    stdout(
        compiler
            .cargo(target_folder)
            .current_dir(workspace::root())
            // Only a nightly compiler, or one told to act as such, writes JSON.
            .env("RUSTC_BOOTSTRAP", "1")
            .args(["rustdoc", "--quiet", "--lib", "--all-features"])
            .args(["--package", workspace::LIBRARY, "--target", TARGET])
            .args(["--", "-Z", "unstable-options", "--output-format", "json"])
            .args(["--cap-lints", "allow"]),
    )?;
    let name = workspace::LIBRARY.replace('-', "_") + ".json";
    let folder = workspace::target().join(target_folder);
    Ok(folder.join(TARGET).join("doc").join(name))
}

/// All items, in the tool's order (by path, so that lines stay where they are).
///
/// Blanket and auto trait impls are left out. A derived impl is one line: its methods would say
/// nothing that the line does not.
fn listing(tool: &Path, json: &Path) -> Result<String, String> {
    let list = |omitted: &[&str]| {
        stdout(
            Command::new(tool)
                .arg("public-api")
                .arg("--rustdoc-json")
                .arg(json)
                .args(["--color", "never"])
                .args(omitted.iter().flat_map(|kind| ["--omit", *kind])),
        )
    };
    let written = list(&["blanket-impls", "auto-trait-impls", "auto-derived-impls"])?;
    let with_derived = list(&["blanket-impls", "auto-trait-impls"])?;
    let mut written = written.lines().peekable();
    let mut text = String::new();
    for line in with_derived.lines() {
        let derived_impl = line.starts_with("impl") && !line.contains("StructuralPartialEq");
        if written.next_if_eq(&line).is_some() || derived_impl {
            text.push_str(line);
            text.push('\n');
        }
    }
    if let Some(line) = written.next() {
        return Err(format!("{TOOL} lists `{line}` in two places"));
    }
    Ok(text)
}
