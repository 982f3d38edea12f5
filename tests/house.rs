//! The house rules of the source: which room may name which, where unsafe code may be, how long a file may be.

use std::fs;
use std::path::{Path, PathBuf};

/// Every module of `src`, and the modules that it may name: those below it. `lib` names them all.
const ROOMS: &[(&str, &[&str])] = &[
    ("errno", &[]),
    ("types", &["errno"]),
    ("arch", &[]),
    ("elf", &[]),
    ("linux", &["arch", "elf", "errno", "types"]),
    ("instant", &["errno", "linux", "types"]),
    ("counter", &["errno", "instant", "linux", "types"]),
];

/// The same of the modules of `src/linux`.
const LINUX: &[(&str, &[&str])] = &[
    ("libc_errno", &[]),
    ("libc_fallback", &["libc_errno"]),
    ("native", &["libc_fallback"]),
    ("slot", &[]),
    ("syscall", &["native"]),
    ("process", &["libc_errno", "native", "syscall"]),
    ("auxv", &["process"]),
    ("mapping", &[]),
    ("vdso", &["auxv", "mapping", "process"]),
    ("outcome", &["vdso"]),
    ("adapters", &["slot", "syscall"]),
    ("resolve", &["adapters", "native", "outcome", "slot", "syscall", "vdso"]),
    ("calls", &["resolve", "syscall"]),
    ("routes", &["outcome", "resolve"]),
];

/// Where unsafe code may be.
const UNSAFE: &[&str] = &["arch", "linux"];

/// The longest file.
const LINES: usize = 500;

/// The faults of one file of `src`, given its room.
fn faults(room: &str, file: &str, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut fault = |line: usize, what: String| faults.push(format!("{file}:{}: {what}", line + 1));
    let is_included = file == "arch/list.rs"; // such a file cannot begin with an inner comment
    if !text.starts_with("//!") && !text.starts_with("#![doc") && !is_included {
        fault(0, "does not open with //!".into());
    }
    let below = ROOMS.iter().find(|(name, _)| *name == room).map_or(&[][..], |(_, below)| below);
    for (number, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or(line);
        for named in words_after(code, "crate::") {
            if room != "lib" && named != room && !below.contains(&named) {
                fault(number, format!("`{room}` may not name `{named}`"));
            }
        }
        let name = file.strip_prefix("linux/").and_then(|file| file.strip_suffix(".rs")).unwrap_or_default();
        if let (Some((_, below)), true) =
            (LINUX.iter().find(|(room, _)| *room == name), code.contains("use super::"))
        {
            for named in words(code).filter(|word| LINUX.iter().any(|(room, _)| room == word)) {
                if !below.contains(&named) {
                    fault(number, format!("`linux::{name}` may not name `{named}`"));
                }
            }
        }
        if words(code).any(|word| word == "unsafe") && !UNSAFE.contains(&room) {
            fault(number, format!("unsafe code in `{room}`"));
        }
        if code.contains("target_arch") && room != "arch" && !file.ends_with("libc_fallback.rs") {
            fault(number, "`arch` alone chooses the architecture".into());
        }
        // libc spells errno differently on the two, and Android's sandbox kills for calls that its libc does not make.
        if code.contains("target_os") && !file.ends_with("errno.rs") && !file.ends_with("abi.rs") {
            let named = |system: &str| code.matches(system).count();
            if named("\"linux\"") != 1 || named("\"android\"") != 1 {
                fault(number, "linux and android are not named together".into());
            }
        }
    }
    faults
}

/// The identifiers of a line.
fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_alphanumeric() && c != '_')
}

/// The identifiers that follow each occurrence of `prefix`.
fn words_after<'a>(code: &'a str, prefix: &'a str) -> impl Iterator<Item = &'a str> {
    code.match_indices(prefix).map(move |(at, _)| {
        let rest = &code[at + prefix.len()..];
        rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or(rest)
    })
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The Rust files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() && !entry.ends_with("target") {
            found.extend(files(&entry));
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            found.push(entry);
        }
    }
    found
}

#[test]
fn rooms_name_only_what_is_below() {
    let source = root().join("src");
    let found = files(&source);
    assert!(found.len() > 20, "{found:?}");
    let mut all = Vec::new();
    for file in found {
        let inside = file.strip_prefix(&source).unwrap().to_str().unwrap();
        let room = inside.split(['/', '.']).next().unwrap();
        assert!(room == "lib" || ROOMS.iter().any(|(name, _)| *name == room), "{inside} is in no room");
        all.extend(faults(room, inside, &fs::read_to_string(&file).unwrap()));
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

/// A room names only rooms that stand before it in the list: so there is no circle.
#[test]
fn there_is_no_circle() {
    for rooms in [ROOMS, LINUX] {
        for (at, (room, below)) in rooms.iter().enumerate() {
            for named in *below {
                assert!(rooms[..at].iter().any(|(name, _)| name == named), "{room} -> {named}");
            }
        }
    }
}

#[test]
fn no_file_is_too_long() {
    let mut found = vec![root().join("build.rs")];
    for folder in ["src", "tests", "examples", "benches", "crates", "fuzz", "xtask"] {
        if root().join(folder).is_dir() {
            found.extend(files(&root().join(folder)));
        }
    }
    for file in found {
        let lines = fs::read_to_string(&file).unwrap().lines().count();
        assert!(lines <= LINES, "{} has {lines} lines", file.display());
    }
}

#[test]
fn the_build_script_is_short_and_names_both_systems() {
    let text = fs::read_to_string(root().join("build.rs")).unwrap();
    assert!(text.lines().count() <= 30);
    assert!(text.contains("[\"linux\", \"android\"]"));
}

/// The rules see what they are there to see.
#[test]
fn the_rules_can_be_broken() {
    let seen = |room, text: &str| faults(room, "sample.rs", &format!("//! Sample.\n{text}")).len();
    assert_eq!(seen("linux", "use crate::types::Cpu;"), 0);
    assert_eq!(seen("elf", "use crate::linux::syscall;"), 1);
    assert_eq!(seen("linux", "fn f() { crate::counter::monotonic() }"), 1);
    assert_eq!(seen("linux", "use crate::Errno;"), 1);
    assert_eq!(seen("linux", "/// See [`crate::syscall`]."), 0);
    assert_eq!(seen("elf", "unsafe fn f() {}"), 1);
    assert_eq!(seen("elf", "#![deny(unsafe_code)]"), 0);
    assert_eq!(seen("linux", "#[cfg(target_arch = \"arm\")]"), 1);
    assert_eq!(seen("linux", "#[cfg(target_os = \"linux\")]"), 1);
    assert_eq!(seen("linux", "#[cfg(any(target_os = \"linux\", target_os = \"android\"))]"), 0);
    assert_eq!(faults("linux", "sample.rs", "use crate::arch;").len(), 1);
    assert_eq!(faults("linux", "linux/slot.rs", "//! Sample.\nuse super::syscall;").len(), 1);
}
