//! `cargo xtask licences`: every package comes from crates.io, under a licence of the list in `deny.toml`.
//!
//! That file is cargo-deny's, for whoever has it; this takes no minute to build, and asks cargo alone.

use std::fs;
use std::process::{Command, ExitCode};

use crate::process::stdout;
use crate::{Error, cache, no_arguments, workspace};

/// The packages that stand alone, each with a Cargo.lock of its own.
const WORKSPACES: [&str; 5] = [
    ".",
    "crates/vdso-time-criterion/tests/newest",
    "crates/vdso-time-trace/tests/linked",
    "examples/freestanding",
    "fuzz",
];

/// Where a package may come from; cargo checks its checksum.
const SOURCE: &str = "registry+https://github.com/rust-lang/crates.io-index";

pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, Error> {
    no_arguments(arguments)?;
    let allowed = allowed(&read("deny.toml")?);
    let mut wrong = Vec::new();
    for folder in WORKSPACES {
        let lock = format!("{folder}/Cargo.lock");
        wrong.extend(foreign_sources(&read(&lock)?).map(|line| format!("{lock}: {line}")));

        let mut tree = Command::new(workspace::cargo());
        tree.current_dir(workspace::root().join(folder));
        tree.args(["tree", "--workspace", "--locked", "--all-features", "--target", "all"]);
        tree.args(["--edges", "normal,build,dev", "--prefix", "none", "--no-dedupe", "--format", "{p}\t{l}"]);
        let tree = stdout(&mut tree)?;
        let mut packages: Vec<&str> = tree.lines().filter(|line| !line.is_empty()).collect();
        packages.sort_unstable();
        packages.dedup();
        let refused = |package: &&&str| {
            let (name, licence) = package.split_once('\t').unwrap_or((package, ""));
            // A package of this repository, which is not published, needs none.
            let is_private = licence.is_empty() && name.ends_with(')');
            !is_private && !is_allowed(licence, &allowed)
        };
        wrong.extend(packages.iter().filter(refused).map(|package| format!("{folder}: {package}")));
        println!("{folder}: {} packages", packages.len());
    }
    for line in &wrong {
        println!("not allowed: {line}");
    }
    Ok(if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn read(file: &str) -> Result<String, String> {
    let file = workspace::root().join(file);
    fs::read_to_string(&file).map_err(|error| cache::at(&file, &error))
}

/// The strings of `allow` under `[licenses]`, one a line.
fn allowed(text: &str) -> Vec<String> {
    let section = text.split("[licenses]").nth(1).unwrap_or_default();
    let list = section.split("allow = [").nth(1).and_then(|list| list.split(']').next()).unwrap_or_default();
    list.lines().filter_map(|line| line.split('"').nth(1)).map(String::from).collect()
}

/// The packages of a Cargo.lock that come from elsewhere.
fn foreign_sources(lock: &str) -> impl Iterator<Item = &str> {
    let source = |line: &str| Some(line.strip_prefix("source = \"")?.trim_end_matches('"').to_string());
    lock.lines().filter(move |line| source(line).is_some_and(|source| source != SOURCE))
}

/// Whether an SPDX expression can be met with these licences: one side of each OR, both of each AND. Old packages write `/` for OR.
fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    let expression = expression.trim();
    let is_allowed = |part: &&str| is_allowed(part, allowed);
    for separator in [" OR ", "/"] {
        let parts = split(expression, separator);
        if parts.len() > 1 {
            return parts.iter().any(&is_allowed);
        }
    }
    let parts = split(expression, " AND ");
    if parts.len() > 1 {
        return parts.iter().all(&is_allowed);
    }
    match expression.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) {
        Some(inner) => is_allowed(&inner),
        None => allowed.iter().any(|licence| licence == expression),
    }
}

/// The parts of an expression that a separator outside of its parentheses makes.
fn split<'a>(expression: &'a str, separator: &str) -> Vec<&'a str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (at, character) in expression.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ if depth == 0 && at >= start && expression[at..].starts_with(separator) => {
                parts.push(&expression[start..at]);
                start = at + separator.len();
            }
            _ => {}
        }
    }
    parts.push(&expression[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::{allowed, foreign_sources, is_allowed};

    #[test]
    fn expressions_are_met_or_not() {
        let list: Vec<String> = ["MIT", "Apache-2.0", "Unicode-3.0"].map(String::from).into();
        for (expression, expected) in [
            ("MIT", true),
            ("MIT OR Apache-2.0", true),
            ("MIT/GPL-3.0", true),
            ("GPL-3.0 OR MIT", true),
            ("GPL-3.0", false),
            ("GPL-3.0 AND MIT", false),
            ("(MIT OR GPL-3.0) AND Unicode-3.0", true),
            ("(GPL-2.0 OR GPL-3.0) AND Unicode-3.0", false),
            ("GPL-3.0 OR (MIT AND Unicode-3.0)", true),
            ("GPL-3.0 OR (MIT AND Zlib)", false),
            ("MIT AND GPL-3.0 OR GPL-2.0", false),
            ("Apache-2.0 WITH LLVM-exception", false),
            ("", false),
        ] {
            assert_eq!(is_allowed(expression, &list), expected, "{expression}");
        }
    }

    #[test]
    fn the_list_is_cargo_deny_s() {
        let text =
            "[bans]\nallow = [\n\"x\",\n]\n[licenses]\nallow = [\n    \"MIT\", # why\n    \"Zlib\",\n]\n";
        assert_eq!(allowed(text), ["MIT", "Zlib"]);
    }

    #[test]
    fn a_fork_is_seen() {
        let lock = "name = \"libc\"\nsource = \"registry+https://github.com/rust-lang/crates.io-index\"\n\
                    name = \"plain\"\nsource = \"git+https://example.org/plain#1234\"\n";
        assert_eq!(foreign_sources(lock).count(), 1);
    }
}
