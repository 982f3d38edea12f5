//! The rules of the repository that no compiler or lint checks: what imports what, where unsafe
//! code may be, where the target is chosen, and how long a line of a comment may be.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The files that are the root of a crate or of a folder.
const ROOTS: &[&str] = &["lib", "main", "mod"];

/// The modules of `src` that may have unsafe code.
const UNSAFE: &[&str] = &["arch", "process", "sys"];

/// The longest line of a comment.
const COLUMNS: usize = 100;

/// The repository's folder.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Returns the files of the repository whose names end so, each with its path and its text.
fn files(end: &str) -> Vec<(String, String)> {
    let (mut folders, mut found) = (vec![PathBuf::from(ROOT)], Vec::new());
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
        {
            if path.is_dir() {
                folders
                    .extend((!path.ends_with("target") && !path.ends_with(".git")).then_some(path));
            } else if path.to_string_lossy().ends_with(end) {
                let inside = path
                    .strip_prefix(ROOT)
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned();
                found.push((inside, fs::read_to_string(path).unwrap()));
            }
        }
    }
    found
}

/// Returns the lines of code, each without its comment.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .map(|line| line.split("//").next().unwrap_or(line))
}

/// Returns the identifiers of a line.
fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_alphanumeric() && c != '_')
}

/// Returns the names after each `path`: one in `path::a::B`, and two in `path::{a, b::C}`.
fn names<'a>(code: &'a str, path: &str) -> Vec<&'a str> {
    let paths = code
        .match_indices(path)
        .map(|(at, path)| &code[at + path.len()..]);
    let group = |path: &'a str| {
        path.strip_prefix('{')
            .and_then(|group| group.split('}').next())
    };
    let first = |path: &'a str| words(path).find(|word| !word.is_empty());
    paths
        .flat_map(|path| {
            group(path)
                .unwrap_or(path.split(',').next().unwrap())
                .split(',')
                .filter_map(first)
        })
        .collect()
}

/// Compares the manifests with the table of CONTRIBUTING.md. Each import stands above its row, so
/// there is no circle, and none of a tool in a library.
#[test]
fn packages_import_only_those_above_them_in_the_table() {
    let manifest = |folder: &Path| fs::read_to_string(folder.join("Cargo.toml"));
    let name = |text: &str| {
        text.split("\nname = \"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap()
            .to_owned()
    };
    let page = fs::read_to_string(Path::new(ROOT).join("CONTRIBUTING.md")).unwrap();
    let table = page
        .split("## Packages")
        .nth(1)
        .unwrap()
        .split("\n## ")
        .next()
        .unwrap();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| {
            line.split('|')
                .map(|cell| cell.trim().trim_matches('`'))
                .collect()
        })
        .collect();
    let mut seen = BTreeSet::new();
    for (path, text) in files("Cargo.toml") {
        let folder = path.trim_end_matches("Cargo.toml").trim_end_matches('/');
        let is_row = |row: &Vec<&str>| match row[1].strip_suffix('*') {
            Some(start) => folder.starts_with(start),
            None => folder == row[1].trim_start_matches('.'),
        };
        let at = rows
            .iter()
            .position(is_row)
            .unwrap_or_else(|| panic!("the table lacks `{folder}`"));
        seen.insert(at);
        let row = &rows[at];
        let name_of_row = if text.contains("publish = false") {
            name(&text)
        } else {
            format!("**{}**", name(&text))
        };
        assert!(
            row[2] == name_of_row || row[1].ends_with('*'),
            "{folder} is {name_of_row}"
        );
        let paths = text
            .split("path = \"")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap());
        let imported =
            paths.filter_map(|path| manifest(&Path::new(ROOT).join(folder).join(path)).ok());
        let imported: BTreeSet<String> = imported.map(|text| name(&text)).collect();
        let listed = imported
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(" ");
        assert_eq!(row[4], listed, "what {folder} imports");
        for import in &imported {
            let stands_above = rows[..at]
                .iter()
                .any(|row| row[2].trim_matches('*') == import);
            assert!(
                stands_above,
                "{folder} imports {import}, which is not above it"
            );
        }
    }
    assert_eq!(seen.len(), rows.len(), "a row has no package");
}

/// Checks each folder of modules, of every package. Removes modules that import no other module,
/// again and again. If some remain, they import one another in a circle.
#[test]
fn modules_do_not_import_one_another_in_a_circle() {
    // By folder, the imports of each module.
    let mut folders = BTreeMap::<String, BTreeMap<String, BTreeSet<String>>>::new();
    for (file, text) in files(".rs") {
        let Some((package, module)) = file.split_once("src/") else {
            continue;
        };
        let code = format!("\n{}", code(&text).collect::<Vec<_>>().join("\n"));
        let code = code
            .replace("\npub use ", "\nuse ")
            .replace("\npub(crate) use ", "\nuse ");
        let parts = module.trim_end_matches(".rs").split('/');
        let parts: Vec<&str> = parts.filter(|part| !ROOTS.contains(part)).collect();
        for (depth, module) in parts.iter().enumerate() {
            let folder = [&["crate"], &parts[..depth]].concat().join("::") + "::";
            let up = format!("\nuse {}", "super::".repeat(parts.len() - depth));
            let named = [&folder, &up]
                .into_iter()
                .flat_map(|path| names(&code, path))
                .map(String::from);
            let modules = folders.entry(format!("{package}: {folder}")).or_default();
            modules
                .entry((*module).into())
                .or_default()
                .extend(named.filter(|name| name != module));
        }
    }
    for modules in folders.values_mut() {
        let mut before = usize::MAX;
        while modules.len() < before {
            before = modules.len();
            let left: BTreeSet<String> = modules.keys().cloned().collect();
            modules.retain(|_, imports| !imports.is_disjoint(&left));
        }
    }
    folders.retain(|_, modules| !modules.is_empty());
    assert!(
        folders.is_empty(),
        "modules import one another in a circle: {folders:#?}"
    );
}

#[test]
fn only_some_modules_have_unsafe_code_and_arch_alone_chooses_a_target() {
    for (file, text) in files(".rs") {
        let Some(file) = file.strip_prefix("src/") else {
            continue;
        };
        let module = file.split(['/', '.']).next().unwrap_or_default();
        for line in code(&text) {
            let is_unsafe = words(line).any(|word| word == "unsafe");
            assert!(
                !is_unsafe || UNSAFE.contains(&module),
                "unsafe code in {file}: {line}"
            );
            let chooses = line.contains("target_arch") && module != "arch";
            assert!(
                !chooses,
                "`arch` alone chooses the architecture, not {file}: {line}"
            );
            // libc spells errno differently on the two, and Android's filter kills for some calls.
            let systems = ["\"linux\"", "\"android\""].map(|system| line.matches(system).count());
            let may_differ = file.ends_with("errno.rs") || file.ends_with("abi.rs");
            let are_together = systems[0] < 2 && systems[0] == systems[1];
            let names_one = line.contains("target_os") && !are_together && !may_differ;
            assert!(
                !names_one,
                "linux and android are not named together in {file}: {line}"
            );
        }
    }
}

#[test]
fn no_line_of_a_comment_is_too_long() {
    for (file, text) in files(".rs") {
        for comment in text
            .lines()
            .filter(|line| line.trim_start().starts_with("//"))
        {
            let is_short = comment.chars().count() <= COLUMNS || comment.contains("]: https://");
            assert!(is_short, "{file}: {comment}");
        }
    }
}
