//! The rules of the source that no compiler or lint checks: which module may import which, where
//! unsafe code may be, where the target is chosen, and how long files and comments may be.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The modules of a folder, one in a line, and after the colon those that each may import. It
/// stands after them, so there is no circle. `lib.rs` imports all. No module imports its `mod.rs`.
const FOLDERS: &[(&str, &str)] = &[
    (
        "src",
        "errno:
        types: errno
        arch:
        elf:
        reason: elf
        decision: arch elf reason
        route: arch decision elf reason
        linux: arch decision elf errno reason route types
        other_os: errno route types
        system: linux other_os
        speed: arch linux system types
        instant: errno system types",
    ),
    (
        "src/types",
        "clock_id:
        cpu:
        timespec:
        timeval: timespec",
    ),
    (
        "src/arch",
        "abi:
        libc_errno:
        targets:
        table: abi
        native: libc_errno table",
    ),
    (
        "src/elf",
        "error:
        steps:
        layout: error steps
        hash: layout
        version: error layout
        headers: error layout steps
        symbol:
        image: error hash headers layout steps symbol version",
    ),
    (
        "src/linux",
        "by_libc:
        slot:
        time32: slot
        syscall:
        process: by_libc syscall
        auxv: process
        mapping:
        vdso: auxv mapping process
        record:
        resolve: record slot syscall time32 vdso
        calls: resolve syscall
        routes: calls record resolve",
    ),
    (
        "src/instant",
        "clocks:
        common:
        monotonic: clocks common
        unix_time:
        wall: clocks common unix_time
        std_times: clocks monotonic wall",
    ),
    (
        "crates/vdso-time-counter/src",
        "engine:
        machine: engine
        global: engine machine
        clocks: engine global machine
        ticks: clocks global machine",
    ),
    (
        "crates/vdso-time-counter/src/engine",
        "high_water:
        interval:
        latch:
        segment:
        status:
        source: status
        sample: segment source
        state: latch sample segment status
        view: latch segment source state status
        step: sample segment source state status
        clock: high_water latch sample segment source state status step view
        bounded: clock interval latch source",
    ),
    (
        "crates/vdso-time-counter/src/machine",
        "arch:
        linux: arch
        other_os:",
    ),
    (
        "crates/vdso-time-counter/src/machine/arch",
        "counter:
        native: counter
        aarch64: counter
        arm: counter
        loongarch64: counter
        powerpc64: counter
        riscv64: counter
        s390x: counter
        x86: counter",
    ),
];

/// The files that are the root of a crate or of a folder.
const ROOTS: &[&str] = &["lib", "main", "mod"];

/// The modules of `src` that may have unsafe code.
const UNSAFE: &[&str] = &["arch", "linux"];

/// The longest file, and the longest line of a comment.
const LINES: usize = 500;
const COLUMNS: usize = 100;

/// The repository's folder.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// The files below a folder of the repository whose names end so, each with its path in that folder
/// and its text.
fn files_named(end: &str, folder: &str) -> Vec<(String, String)> {
    fn add(end: &str, folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() && !entry.ends_with("target") {
                add(end, &entry, found);
            } else if entry.to_string_lossy().ends_with(end) {
                found.push(entry);
            }
        }
    }
    let folder = Path::new(ROOT).join(folder);
    let mut found = Vec::new();
    add(end, &folder, &mut found);
    assert!(!found.is_empty(), "{}", folder.display());
    let inside = |file: &PathBuf| file.strip_prefix(&folder).unwrap().to_str().unwrap().to_owned();
    found.iter().map(|file| (inside(file), fs::read_to_string(file).unwrap())).collect()
}

fn files(folder: &str) -> Vec<(String, String)> {
    files_named(".rs", folder)
}

/// The lines of code, each without its comment.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(|line| line.split("//").next().unwrap_or(line))
}

/// The identifiers of a line.
fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_alphanumeric() && c != '_')
}

/// The names after each `path`: one in `path::a::B`, and two in `path::{a, b::C}`.
fn names<'a>(code: &'a str, path: &str) -> Vec<&'a str> {
    let paths = code.match_indices(path).map(|(at, path)| &code[at + path.len()..]);
    let group = |path: &'a str| path.strip_prefix('{').and_then(|group| group.split('}').next());
    let first = |path: &'a str| words(path).find(|word| !word.is_empty());
    paths
        .flat_map(|path| group(path).unwrap_or(path.split(',').next().unwrap()).split(',').filter_map(first))
        .collect()
}

/// Compares the manifests with the table of CONTRIBUTING.md. Each import stands above its row, so
/// there is no circle, and none of a tool in a library.
#[test]
fn packages_import_only_those_above_them_in_the_table() {
    let manifest = |folder: &Path| fs::read_to_string(folder.join("Cargo.toml"));
    let name = |text: &str| text.split("\nname = \"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let page = fs::read_to_string(Path::new(ROOT).join("CONTRIBUTING.md")).unwrap();
    let table = page.split("## Packages").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.split('|').map(|cell| cell.trim().trim_matches('`')).collect())
        .collect();
    let mut seen = BTreeSet::new();
    for (path, text) in files_named("Cargo.toml", ".") {
        let folder = path.trim_end_matches("Cargo.toml").trim_end_matches('/');
        let is_row = |row: &Vec<&str>| match row[1].strip_suffix('*') {
            Some(start) => folder.starts_with(start),
            None => folder == row[1].trim_start_matches('.'),
        };
        let at = rows.iter().position(is_row).unwrap_or_else(|| panic!("the table lacks `{folder}`"));
        seen.insert(at);
        let row = &rows[at];
        let name_of_row =
            if text.contains("publish = false") { name(&text) } else { format!("**{}**", name(&text)) };
        assert!(row[2] == name_of_row || row[1].ends_with('*'), "{folder} is {name_of_row}");
        let paths = text.split("path = \"").skip(1).map(|rest| rest.split('"').next().unwrap());
        let imported = paths.filter_map(|path| manifest(&Path::new(ROOT).join(folder).join(path)).ok());
        let imported: BTreeSet<String> = imported.map(|text| name(&text)).collect();
        let listed = imported.iter().map(String::as_str).collect::<Vec<_>>().join(" ");
        assert_eq!(row[4], listed, "what {folder} imports");
        for import in &imported {
            let stands_above = rows[..at].iter().any(|row| row[2].trim_matches('*') == import);
            assert!(stands_above, "{folder} imports {import}, which is not above it");
        }
    }
    assert_eq!(seen.len(), rows.len(), "a row has no package");
}

#[test]
fn modules_import_only_what_is_below() {
    let mut faults = Vec::new();
    for (folder, modules) in FOLDERS {
        let line = |line: &'static str| line.trim().split_once(':').expect("a module");
        let modules: Vec<(&str, &str)> = modules.lines().map(line).collect();
        let path = format!("crate{}::", folder.split("src").last().unwrap_or_default().replace('/', "::"));
        for (at, (module, below)) in modules.iter().enumerate() {
            let stands_before = |named: &str| modules[..at].iter().any(|(name, _)| *name == named);
            assert!(below.split_whitespace().all(stands_before), "{folder}: {module} -> {below}");
        }
        for (file, text) in files(folder) {
            let mut parts = file.trim_end_matches(".rs").split('/');
            let module = parts.next().unwrap_or_default();
            if module == "lib" || module == "mod" {
                continue;
            }
            let Some((_, below)) = modules.iter().find(|(name, _)| *name == module) else {
                faults.push(format!("{folder}/{file} is in no module of the list"));
                continue;
            };
            let code = code(&text).collect::<Vec<_>>().join("\n");
            let mut named = names(&code, &path);
            // In a deeper file, `super` is another module.
            if parts.all(|part| part == "mod") {
                for declaration in ["\nuse super::", "\npub use super::", "\npub(crate) use super::"] {
                    named.extend(names(&code, declaration));
                }
            }
            named.retain(|name| *name != module && !words(below).any(|below| below == *name));
            faults.extend(named.iter().map(|name| format!("{folder}/{file} may not import `{name}`")));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Checks every folder of every package. It removes modules that import no other, until none is
/// left, or a circle and what imports it.
#[test]
fn modules_do_not_import_one_another_in_a_circle() {
    let name = |entry: Result<fs::DirEntry, _>| entry.unwrap().file_name().into_string().unwrap();
    let packages = |folder| {
        let entries = fs::read_dir(Path::new(ROOT).join(folder)).unwrap();
        entries.map(move |entry| format!("{folder}/{}/src", name(entry)))
    };
    let mut sources: Vec<String> = ["crates", "tools", "dev"].into_iter().flat_map(packages).collect();
    sources.retain(|folder| Path::new(ROOT).join(folder).exists());
    sources.extend(["src", "benches/src", "benches/peers/src", "xtask/src"].map(String::from));
    let mut circles = Vec::new();
    for source in sources {
        // The imports of each module, by folder.
        let mut folders = BTreeMap::<String, BTreeMap<String, BTreeSet<String>>>::new();
        for (file, text) in files(&source) {
            let code = code(&text).collect::<Vec<_>>().join("\n");
            let parts: Vec<&str> = file.trim_end_matches(".rs").split('/').collect();
            for (depth, module) in parts.iter().enumerate().filter(|(_, part)| !ROOTS.contains(part)) {
                let folder = parts[..depth].join("/");
                let deeper = parts[depth + 1..].iter().filter(|part| !ROOTS.contains(part)).count();
                let up = "super::".repeat(deeper + 1);
                let paths = [
                    format!("{}::", [&["crate"], &parts[..depth]].concat().join("::")),
                    format!("\nuse {up}"),
                    format!("\npub use {up}"),
                    format!("\npub(crate) use {up}"),
                ];
                let named = paths.iter().flat_map(|path| names(&code, path)).map(String::from);
                let imports = folders.entry(folder).or_default().entry((*module).into()).or_default();
                imports.extend(named.filter(|name| name != module));
            }
        }
        for (folder, mut modules) in folders {
            let mut before = 0;
            while modules.len() != before {
                before = modules.len();
                let left: BTreeSet<String> = modules.keys().cloned().collect();
                modules.retain(|_, imports| !imports.is_disjoint(&left));
            }
            if before > 0 {
                let left: Vec<_> = modules.into_keys().collect();
                circles.push(format!("{source}/{folder}: {}", left.join(" ")));
            }
        }
    }
    assert!(circles.is_empty(), "modules import one another in a circle:\n{}", circles.join("\n"));
}

#[test]
fn only_arch_and_linux_have_unsafe_code_and_choose_a_target() {
    for (file, text) in files("src") {
        let module = file.split(['/', '.']).next().unwrap_or_default();
        for line in code(&text) {
            let is_unsafe = words(line).any(|word| word == "unsafe");
            assert!(!is_unsafe || UNSAFE.contains(&module), "unsafe code in {file}: {line}");
            let chooses = line.contains("target_arch") && module != "arch" && file != "linux/by_libc.rs";
            assert!(!chooses, "`arch` alone chooses the architecture, not {file}: {line}");
            // libc spells errno differently on the two, and Android's filter kills for some calls.
            let systems = ["\"linux\"", "\"android\""].map(|system| line.matches(system).count());
            let may_differ = file.ends_with("errno.rs") || file.ends_with("abi.rs");
            let are_together = systems[0] < 2 && systems[0] == systems[1];
            let names_one = line.contains("target_os") && !are_together && !may_differ;
            assert!(!names_one, "linux and android are not named together in {file}: {line}");
        }
    }
}

#[test]
fn no_file_and_no_line_of_a_comment_is_too_long() {
    let folders = ["src", "tests", "examples", "benches", "crates", "tools", "dev", "xtask"];
    let mut found: Vec<_> = folders.into_iter().flat_map(files).collect();
    found.push(("build.rs".into(), include_str!("../build.rs").into()));
    for (file, text) in found {
        let lines = text.lines().count();
        assert!(lines <= LINES, "{file} has {lines} lines");
        for comment in text.lines().filter(|line| line.trim_start().starts_with("//")) {
            let is_short = comment.chars().count() <= COLUMNS || comment.contains("]: https://");
            assert!(is_short, "{file}: {comment}");
        }
    }
}

/// What a test needs is somewhere in CI, so that the test runs there.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[test]
fn every_need_of_a_test_is_required_in_ci_where_its_table_says() {
    let root = Path::new(ROOT);
    let folders = ["tests", "benches", "crates", "tools", "dev", "xtask"];
    let mut tests: Vec<_> = folders.into_iter().flat_map(files).collect();
    tests.retain(|(file, _)| !file.ends_with("need.rs"));
    for need in test_support::Need::ALL {
        let name = format!("Need::{need:?}");
        let is_named = |text: &str| {
            text.match_indices(&name)
                .any(|(at, name)| !text[at + name.len()..].starts_with(char::is_alphanumeric))
        };
        assert!(tests.iter().any(|(_, text)| is_named(text)), "no test needs {need:?}");
        for place in need.places() {
            let (file, word) = place.listed(*need);
            let text = fs::read_to_string(root.join(file)).unwrap();
            let requires = |line: &&str| line.to_lowercase().contains("require");
            let of_line = |line: &str| line.split(['"', ' ', '=']).any(|found| found == word);
            assert!(text.lines().filter(requires).any(of_line), "{file} does not require {word}");
            println!("{:<20} {:<20} {place:?}: {word} in {file}", format!("{need:?}"), need.word());
        }
    }
}
