//! The rules of the source that no compiler or lint checks: which module may import which, where
//! unsafe code may be, where the target is chosen, and how long files and comments may be.

use std::fs;
use std::path::{Path, PathBuf};

/// A module, and the modules that it may import.
type Module = (&'static str, &'static [&'static str]);

/// Every module of `src`. `lib` imports them all.
const MODULES: &[Module] = &[
    ("errno", &[]),
    ("types", &["errno"]),
    ("arch", &[]),
    ("elf", &[]),
    ("reason", &["elf"]),
    ("decision", &["arch", "elf", "reason"]),
    ("route", &["arch", "decision", "elf", "reason"]),
    ("linux", &["arch", "decision", "elf", "errno", "reason", "route", "types"]),
    ("other_os", &["errno", "route", "types"]),
    // The choice of one of the two.
    ("system", &["linux", "other_os"]),
    ("instant", &["errno", "system", "types"]),
];

/// The modules of a folder. None may import the folder's `mod.rs`.
const FOLDERS: &[(&str, &[Module])] = &[
    (
        "arch",
        &[
            ("abi", &[]),
            ("libc_errno", &[]),
            ("list", &[]),
            ("table", &["abi"]),
            ("native", &["libc_errno", "table"]),
        ],
    ),
    (
        "elf",
        &[
            ("error", &[]),
            ("steps", &[]),
            ("layout", &["error", "steps"]),
            ("hash", &["layout"]),
            ("version", &["error", "layout"]),
            ("headers", &["error", "layout", "steps"]),
            ("symbol", &[]),
            ("image", &["error", "hash", "headers", "layout", "steps", "symbol", "version"]),
        ],
    ),
    (
        "linux",
        &[
            ("by_libc", &[]),
            ("slot", &[]),
            ("time32", &["slot"]),
            ("syscall", &[]),
            ("process", &["by_libc", "syscall"]),
            ("auxv", &["process"]),
            ("mapping", &[]),
            ("vdso", &["auxv", "mapping", "process"]),
            ("record", &[]),
            ("resolve", &["record", "slot", "syscall", "time32", "vdso"]),
            ("calls", &["resolve", "syscall"]),
            ("routes", &["calls", "record", "resolve"]),
        ],
    ),
];

/// Every module of `crates/vdso-time-counter/src`, whose `lib.rs` imports them all. `linux` is
/// `system` on Linux.
const COUNTER: &[Module] = &[
    ("arch", &[]),
    ("high_water", &[]),
    ("latch", &[]),
    ("segment", &[]),
    ("status", &[]),
    ("source", &["status"]),
    ("sample", &["segment", "source"]),
    ("state", &["latch", "sample", "segment", "status"]),
    ("view", &["latch", "segment", "source", "state", "status"]),
    ("discipline", &["sample", "segment", "source", "state", "status"]),
    (
        "clock",
        &["discipline", "high_water", "latch", "sample", "segment", "source", "state", "status", "view"],
    ),
    ("bounded", &["clock", "latch", "source"]),
    ("system", &["arch", "source", "status"]),
    ("machine", &["arch", "source", "status", "system"]),
    ("global", &["arch", "clock", "machine", "status"]),
    ("clocks", &["global", "machine", "source"]),
    ("interval", &["bounded", "global"]),
    ("ticks", &["arch", "clocks", "global"]),
    ("recent", &["clocks", "high_water"]),
    ("refresher", &["recent"]),
];

/// Where unsafe code may be.
const UNSAFE: &[&str] = &["arch", "linux"];

/// The longest file, and the longest line of a comment.
const LINES: usize = 500;
const COLUMNS: usize = 100;

/// The modules that one may import.
fn below(modules: &[Module], name: &str) -> Option<&'static [&'static str]> {
    modules.iter().find(|(module, _)| *module == name).map(|(_, below)| *below)
}

/// The modules that a file's `use` declarations name after this path, as in `path::a::B` and
/// `path::{a, b::C}`.
fn imported<'a>(text: &'a str, path: &str) -> Vec<&'a str> {
    let starts = ["\nuse ", "\npub use ", "\npub(crate) use "];
    let declarations = starts.into_iter().flat_map(|start| text.split(start).skip(1));
    let paths = declarations.filter_map(|declaration| declaration.split(';').next()?.strip_prefix(path));
    let mut found = Vec::new();
    for path in paths {
        let Some(group) = path.strip_prefix('{') else {
            found.extend(words(path).next());
            continue;
        };
        let mut depth = 0;
        let is_end = |c: char| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            c == ',' && depth == 0
        };
        found.extend(group.split(is_end).filter_map(|part| words(part).find(|word| !word.is_empty())));
    }
    found
}

/// The faults of one file of `src`.
fn faults(file: &str, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut path = file.trim_end_matches(".rs").split('/');
    let (module, child) = (path.next().unwrap_or_default(), path.next());
    let Some(below_module) = below(MODULES, module).or((module == "lib").then_some(&[])) else {
        return vec![format!("{file} is in no module of the list")];
    };
    let folder = FOLDERS.iter().find(|(folder, _)| *folder == module);
    if let (Some((folder, modules)), Some(child)) = (folder, child.filter(|child| *child != "mod")) {
        let Some(below_child) = below(modules, child) else {
            return vec![format!("{file} is in no module of the list")];
        };
        let by_super = if path.next().is_none() { imported(text, "super::") } else { Vec::new() };
        for named in by_super.into_iter().chain(imported(text, &format!("crate::{folder}::"))) {
            if named != child && !below_child.contains(&named) {
                faults.push(format!("{file} may not import `{named}`"));
            }
        }
    }
    for (line, code) in text.lines().map(|line| line.split("//").next().unwrap_or(line)).enumerate() {
        let mut fault = |what: String| faults.push(format!("{file}:{}: {what}", line + 1));
        for (at, prefix) in code.match_indices("crate::") {
            let named = words(&code[at + prefix.len()..]).next().unwrap_or_default();
            if module != "lib" && named != module && !below_module.contains(&named) {
                fault(format!("`{module}` may not import `{named}`"));
            }
        }
        if words(code).any(|word| word == "unsafe") && !UNSAFE.contains(&module) {
            fault(format!("unsafe code in `{module}`"));
        }
        if code.contains("target_arch") && module != "arch" && !file.ends_with("by_libc.rs") {
            fault("`arch` alone chooses the architecture".into());
        }
        // libc spells errno differently on the two, and Android's filter kills for some calls.
        if code.contains("target_os") && !file.ends_with("errno.rs") && !file.ends_with("abi.rs") {
            let named = |system: &str| code.matches(system).count();
            if named("\"linux\"") > 1 || named("\"linux\"") != named("\"android\"") {
                fault("linux and android are not named together".into());
            }
        }
    }
    faults
}

/// The identifiers of a line.
fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_alphanumeric() && c != '_')
}

/// The Rust files below a folder of this package.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() && !entry.ends_with("target") {
            found.extend(files(&entry));
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            found.push(entry);
        }
    }
    found
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn modules_import_only_what_is_below() {
    let source = root().join("src");
    let found = files(&source);
    assert!(found.len() > 20, "{found:?}");
    let all = found.iter().flat_map(|file| {
        let inside = file.strip_prefix(&source).unwrap().to_str().unwrap();
        faults(inside, &fs::read_to_string(file).unwrap())
    });
    let all: Vec<String> = all.collect();
    assert!(all.is_empty(), "{}", all.join("\n"));
}

/// The assembly of an architecture imports the trait `counter`, and no other child imports a
/// sister.
#[test]
fn the_counters_modules_import_only_what_is_below() {
    let source = root().join("crates/vdso-time-counter/src");
    let found = files(&source);
    assert!(found.len() > 20, "{found:?}");
    for file in found {
        let text = fs::read_to_string(&file).unwrap();
        let inside = file.strip_prefix(&source).unwrap().to_str().unwrap();
        let mut path = inside.trim_end_matches(".rs").split('/');
        let folder = path.next().unwrap_or_default();
        let is_child = path.next().is_some_and(|child| child != "mod");
        let module = if folder == "linux" { "system" } else { folder };
        let below = below(COUNTER, module).or((module == "lib").then_some(&[]));
        let below = below.unwrap_or_else(|| panic!("{inside} is in no module of the list"));
        let by_super = imported(&text, "super::");
        let (sisters, others) = if is_child { (by_super, vec![]) } else { (vec![], by_super) };
        for named in others.into_iter().chain(imported(&text, "crate::")) {
            assert!(below.contains(&named), "{inside} may not import `{named}`");
        }
        assert!(sisters.iter().all(|named| *named == "counter"), "{inside} imports {sisters:?}");
    }
}

/// A module imports only modules that stand before it in the list. So there is no circle.
#[test]
fn there_is_no_circle() {
    for modules in FOLDERS.iter().map(|(_, modules)| *modules).chain([MODULES, COUNTER]) {
        for (at, (module, below)) in modules.iter().enumerate() {
            for named in *below {
                assert!(modules[..at].iter().any(|(name, _)| name == named), "{module} -> {named}");
            }
        }
    }
}

#[test]
fn no_file_and_no_line_of_a_comment_is_too_long() {
    let folders = ["src", "tests", "examples", "benches", "crates", "fuzz", "xtask"];
    let found = folders.iter().flat_map(|folder| files(&root().join(folder)));
    for file in found.chain([root().join("build.rs")]) {
        let text = fs::read_to_string(&file).unwrap();
        let lines = text.lines().count();
        assert!(lines <= LINES, "{} has {lines} lines", file.display());
        for comment in text.lines().filter(|line| line.trim_start().starts_with("//")) {
            let is_short = comment.chars().count() <= COLUMNS || comment.contains("]: https://");
            assert!(is_short, "{}: {comment}", file.display());
        }
    }
}
