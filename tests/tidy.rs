//! The rules of the repository that neither the compiler nor a lint checks.

use std::fs;
use std::path::Path;

/// The longest line of a comment.
const COLUMNS: usize = 100;

/// The repository's directory.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Returns the Rust files in a directory of the repository, each with its path and its text.
fn rust_files(directory: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut directories = vec![Path::new(ROOT).join(directory)];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                if !is_foreign(&path) {
                    directories.push(path);
                }
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let inside = path.strip_prefix(ROOT).unwrap();
                found.push((inside.display().to_string(), text));
            }
        }
    }
    assert!(!found.is_empty(), "{directory} has no Rust file");
    found
}

/// Returns whether cargo or git writes this directory.
fn is_foreign(directory: &Path) -> bool {
    directory.ends_with("target") || directory.ends_with(".git")
}

#[test]
fn no_line_of_a_comment_is_too_long() {
    for (file, text) in rust_files("") {
        for line in text.lines() {
            let is_comment = line.trim_start().starts_with("//");
            let is_link = line.contains("]: https://");
            assert!(
                !is_comment || is_link || line.chars().count() <= COLUMNS,
                "{file}: {line}"
            );
        }
    }
}

#[test]
fn only_src_arch_names_an_architecture() {
    for (file, text) in rust_files("src") {
        for line in code(&text) {
            let is_arch = file.starts_with("src/arch/");
            assert!(is_arch || !line.contains("target_arch"), "{file}: {line}");
        }
    }
}

/// libc spells errno differently on Linux and Android, and Android's filter kills the process for
/// some calls, so two files distinguish them.
#[test]
fn linux_and_android_are_named_together() {
    const DISTINGUISH: [&str; 2] = ["src/arch/libc_errno.rs", "src/arch/abi.rs"];
    for (file, text) in rust_files("src") {
        if DISTINGUISH.contains(&&*file) {
            continue;
        }
        for line in code(&text) {
            let linux = line.matches("\"linux\"").count();
            let android = line.matches("\"android\"").count();
            assert_eq!(linux, android, "{file}: {line}");
        }
    }
}

/// Returns the lines of code, each without its comment.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .map(|line| line.split("//").next().unwrap_or(line))
}
