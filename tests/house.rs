//! The rules of the source that no compiler or lint checks: which module may import which, where
//! unsafe code may be, where the target is chosen, and how long files and comments may be.

use std::fs;
use std::path::{Path, PathBuf};

/// Every module of `src`, and the modules that it may import. `lib` imports them all.
const MODULES: &[(&str, &[&str])] = &[
    ("errno", &[]),
    ("types", &["errno"]),
    ("arch", &[]),
    ("elf", &[]),
    ("route", &["arch", "elf"]),
    ("linux", &["arch", "elf", "errno", "route", "types"]),
    ("other_os", &["arch", "errno", "route", "types"]),
    // The choice of one of the two.
    ("system", &["linux", "other_os"]),
    ("instant", &["errno", "system", "types"]),
];

/// The same for the modules of `src/linux`.
const LINUX: &[(&str, &[&str])] = &[
    ("libc_fallback", &[]),
    ("native", &["libc_fallback"]),
    ("slot", &[]),
    ("syscall", &["native"]),
    ("process", &["native", "syscall"]),
    ("auxv", &["process"]),
    ("mapping", &[]),
    ("vdso", &["auxv", "mapping", "process"]),
    ("record", &[]),
    ("rseq", &["auxv", "native"]),
    ("adapters", &["slot", "syscall"]),
    ("resolve", &["adapters", "native", "record", "rseq", "slot", "syscall", "vdso"]),
    ("calls", &["resolve", "rseq", "syscall"]),
    ("routes", &["calls", "native", "record", "resolve", "rseq"]),
];

/// Where unsafe code may be.
const UNSAFE: &[&str] = &["arch", "linux"];

/// The longest file, and the longest line of a comment.
const LINES: usize = 500;
const COLUMNS: usize = 100;

/// The modules that one may import.
fn below<'a>(modules: &[(&str, &'a [&'a str])], name: &str) -> Option<&'a [&'a str]> {
    modules.iter().find(|(module, _)| *module == name).map(|(_, below)| *below)
}

/// The faults of one file of `src`.
fn faults(file: &str, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let module = file.split(['/', '.']).next().unwrap_or_default();
    let Some(below_module) = below(MODULES, module).or((module == "lib").then_some(&[])) else {
        return vec![format!("{file} is in no module of the list")];
    };
    let in_linux = file.strip_prefix("linux/").and_then(|file| file.strip_suffix(".rs"));
    let below_file = in_linux.and_then(|name| below(LINUX, name));
    if in_linux.is_some_and(|name| name != "mod") && below_file.is_none() {
        faults.push(format!("{file} is in no module of the list"));
    }
    for (line, code) in text.lines().map(|line| line.split("//").next().unwrap_or(line)).enumerate() {
        let mut fault = |what: String| faults.push(format!("{file}:{}: {what}", line + 1));
        for (at, prefix) in code.match_indices("crate::") {
            let named = words(&code[at + prefix.len()..]).next().unwrap_or_default();
            if module != "lib" && named != module && !below_module.contains(&named) {
                fault(format!("`{module}` may not import `{named}`"));
            }
        }
        if let (Some(below_file), true) = (below_file, code.contains("use super::")) {
            for named in words(code).filter(|word| below(LINUX, word).is_some()) {
                if !below_file.contains(&named) {
                    fault(format!("it may not import `{named}`"));
                }
            }
        }
        if words(code).any(|word| word == "unsafe") && !UNSAFE.contains(&module) {
            fault(format!("unsafe code in `{module}`"));
        }
        if code.contains("target_arch") && module != "arch" && !file.ends_with("libc_fallback.rs") {
            fault("`arch` alone chooses the architecture".into());
        }
        // libc spells errno differently on the two, and Android's filter kills for some calls.
        if code.contains("target_os") && !file.ends_with("errno.rs") && !file.ends_with("abi.rs") {
            let named = |system: &str| code.matches(system).count();
            if named("\"linux\"") != 1 || named("\"android\"") != 1 {
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

/// A module imports only modules that stand before it in the list. So there is no circle.
#[test]
fn there_is_no_circle() {
    for modules in [MODULES, LINUX] {
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
