//! `cargo xtask api`: compares the public APIs with their listings in `xtask/api`, and the
//! declarations for C with their headers.
//!
//! `cargo-public-api` makes the listing from rustdoc's JSON, whose format changes with nearly every
//! release. So both versions are fixed: rustdoc belongs to the oldest supported compiler.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use fs_err as fs;
use xshell::{Shell, cmd};

use crate::rust::Rust;
use crate::{tools, workspace};

/// The last version that reads the JSON of rustdoc 1.85: format 37 adds one field to its format 36.
const TOOL_VERSION: &str = "0.42.0";

/// The API of one target, whatever machine lists it.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// The packages whose APIs are listed.
const PACKAGES: [&str; 5] = [
    "vdso-time",
    "vdso-time-counter",
    "vdso-doctor",
    "vdso-time-trace",
    "vdso-time-quanta",
];

/// The package for C. For each header: its name, its source, and the configuration with which
/// cbindgen makes it.
const C_PACKAGE: &str = "crates/vdso-time-c";
const HEADERS: [[&str; 3]; 2] = [
    ["vdso_time.h", "clock.rs", "cbindgen.toml"],
    ["vdso_time_counter.h", "counter.rs", "cbindgen-counter.toml"],
];
const CBINDGEN_VERSION: &str = "0.29.4";

pub(crate) fn run(write: bool) -> Result<ExitCode> {
    let sh = workspace::shell()?;
    let cbindgen = tools::from_crates_io("cbindgen", CBINDGEN_VERSION)?;
    for [header, source, config] in HEADERS {
        let made = cmd!(
            sh,
            "{cbindgen} --quiet --config {C_PACKAGE}/{config} {C_PACKAGE}/src/{source}"
        );
        // C89 has no `//`, and neither C89 nor C++98 a comma after the last enumerator.
        let made = made.quiet().read()?;
        let lines: Vec<_> = made
            .lines()
            .map(|line| line.split(" //").next().unwrap_or(line).trim_end())
            .collect();
        let text = lines.join("\n").replace(",\n};", "\n};");
        compare(&sh, &format!("{C_PACKAGE}/include/{header}"), text, write)?;
    }

    let tool = tools::from_crates_io("cargo-public-api", TOOL_VERSION)?;
    for package in PACKAGES {
        let file = format!("xtask/api/{package}.txt");
        let json = rustdoc_json(&sh, package)?;
        let listing = cmd!(
            sh,
            "{tool} public-api --rustdoc-json {json} --color never --omit blanket-impls"
        );
        let listing = listing.quiet().read()?;
        compare(&sh, &file, listing, write)?;
        println!("{file} lists the public API of {package}");
    }
    println!("{C_PACKAGE}/include lists the declarations for C");
    Ok(ExitCode::SUCCESS)
}

/// Compares a file with its new text, or writes it.
fn compare(sh: &Shell, name: &str, mut new: String, write: bool) -> Result<()> {
    new.push('\n');
    let file = workspace::root().join(name);
    let made = if write {
        file
    } else {
        workspace::target().join("api").join(name.replace('/', "-"))
    };
    fs::create_dir_all(made.parent().unwrap_or(&made))?;
    fs::write(&made, new)?;
    let diff = cmd!(
        sh,
        "git --no-pager diff --no-index --unified=0 -- {name} {made}"
    )
    .quiet();
    if !write && diff.run().is_err() {
        bail!(
            "the public API differs from {name}; if the change is intended, run \
             `cargo xtask api --write` and describe it in CHANGELOG.md"
        );
    }
    Ok(())
}

fn rustdoc_json(sh: &Shell, package: &str) -> Result<PathBuf> {
    let directory = "api";
    // Stable compilers write JSON only if told to act as nightly.
    let cargo = Rust::oldest(&[])?
        .cargo(sh, directory)
        .env("RUSTC_BOOTSTRAP", "1");
    let cargo = cargo.args([
        "rustdoc",
        "--quiet",
        "--lib",
        "--all-features",
        "--package",
        package,
    ]);
    let cargo = cargo.args([
        "--target",
        TARGET,
        "--",
        "-Z",
        "unstable-options",
        "--output-format",
        "json",
    ]);
    cargo.args(["--cap-lints", "allow"]).run()?;
    Ok(workspace::target()
        .join(directory)
        .join(TARGET)
        .join("doc")
        .join(format!("{}.json", package.replace('-', "_"))))
}
