//! Finds the paths that a program names: files such as `../shared/data.txt`, and what cargo built
//! for it.
//!
//! The paths are among the strings of the program, and rustc stores strings one after the other
//! without a separator. So the program does not tell where a path ends. The path is the longest one
//! that exists:
//!
//! ```text
//! the program contains   ../shared/data.txtassertion failed
//! beside the package is  ../shared/data.txt, ../shared/data
//! it names               ../shared/data.txt, the longest path that exists
//! ```
//!
//! A path that the program composes at run time is not found.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use memchr::memmem::find_iter;

const PARENT: &[u8] = b"../";

/// The longest name of a file.
const LONGEST_NAME: usize = 255;

/// Returns the existing paths that the program's bytes contain: paths that lead out of the package
/// with `../`, and absolute paths in cargo's target directory, such as `CARGO_BIN_EXE_NAME` and
/// `OUT_DIR`.
pub(super) fn paths(bytes: &[u8], program: &Path, package: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for at in find_iter(bytes, PARENT) {
        let is_first = !bytes[..at].ends_with(PARENT);
        if !is_first {
            continue;
        }
        if let Some(path) = relative(&bytes[at..], package) {
            // Skip a path that leads back into the package, because the guest already has the
            // package.
            if !path.starts_with(package) && !package.starts_with(&path) {
                found.insert(path);
            }
        }
    }
    if let Some(target) = target_directory(program) {
        let prefix = [target.as_os_str().as_bytes(), b"/"].concat();
        for at in find_iter(bytes, &prefix) {
            found.extend(longest(&target, &bytes[at + prefix.len()..]));
        }
    }
    found
}

/// Returns the path with which a text begins, if it exists. The text begins with one or more `../`.
fn relative(text: &[u8], package: &Path) -> Option<PathBuf> {
    let mut base = package;
    let mut rest = text;
    while let Some(after) = rest.strip_prefix(PARENT) {
        base = base.parent()?;
        rest = after;
    }
    longest(base, rest)
}

/// Returns the longest existing path in `directory` with which the text begins, if there is one.
fn longest(directory: &Path, text: &[u8]) -> Option<PathBuf> {
    let is_end = |byte: &u8| matches!(byte, b'/' | b'\0' | b'\n');
    let most = text.len().min(LONGEST_NAME + 1);
    let end = text[..most].iter().position(is_end).unwrap_or(most);
    for length in (1..=end).rev() {
        let name = &text[..length];
        let path = directory.join(OsStr::from_bytes(name));
        if matches!(name, b"." | b"..") || !path.exists() {
            continue;
        }
        let rest = &text[length..];
        if let Some(rest) = rest.strip_prefix(b"/") {
            return Some(longest(&path, rest).unwrap_or(path));
        }
        return Some(path);
    }
    None
}

/// Returns the directory that cargo marks as its own and that contains the program.
fn target_directory(program: &Path) -> Option<PathBuf> {
    let mut directories = program.ancestors().skip(1);
    let marked = directories.find(|directory| directory.join("CACHEDIR.TAG").is_file())?;
    Some(marked.to_path_buf())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Creates files, each with the directories above it.
    fn directory(name: &str, files: &[&str]) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("named-{name}-{}", std::process::id()));
        for file in files {
            let file = directory.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
        directory
    }

    #[test]
    fn the_longest_path_that_exists_is_found_between_other_texts() {
        let all = directory(
            "all",
            &[
                "a/package/src/lib.rs",
                "a/data",
                "a/data.txt",
                "shared/sub/x y é.bin",
                "a/package/target/CACHEDIR.TAG",
                "a/package/target/debug/tool",
                "a/package/target/debug/deps/test-1",
            ],
        );
        let package = all.join("a/package");
        let program = package.join("target/debug/deps/test-1");
        let tool = package.join("target/debug/tool");
        for (text, expected) in [
            ("..", None),
            ("x../data.txtassertion", Some("a/data.txt")),
            ("../data.tx", Some("a/data")),
            ("../data.txt/", Some("a/data.txt")),
            (
                "../../shared/sub/x y é.binother",
                Some("shared/sub/x y é.bin"),
            ),
            // The test may create this file, so its directory is needed.
            ("../../shared/sub/new", Some("shared/sub")),
            ("../../sharedother", Some("shared")),
            // The package and its parents are not files beside it.
            ("../package/src/lib.rs", None),
            ("../../a", None),
            ("../absent", None),
            ("../../../../../../../../../../x", None),
        ] {
            let expected: Vec<PathBuf> = expected.iter().map(|path| all.join(path)).collect();
            let text = [b"\xff\0", text.as_bytes()].concat();
            let found: Vec<PathBuf> = paths(&text, &program, &package).into_iter().collect();
            assert_eq!(found, expected, "{}", String::from_utf8_lossy(&text));
        }
        // Here cargo's target directory is outside the package. The program contains the absolute
        // path of a file in that directory.
        let outside = all.join("a/other");
        let text = format!("{}run", tool.display());
        let found = paths(text.as_bytes(), &program, &outside);
        fs::remove_dir_all(&all).unwrap();
        assert_eq!(found.into_iter().collect::<Vec<_>>(), [tool]);
    }
}
