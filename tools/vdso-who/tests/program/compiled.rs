//! Programs that tests compile.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{has_tool, target_tmpdir};

/// How to make a program: its name, a compiler, the compiler's flags, the source, and the commands
/// that a shell then runs on the program, whose path is `$P`.
pub(crate) type Recipe = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

/// Compiles a program and returns its path. Returns `None` if the compiler or xz(1) is missing.
pub(crate) fn compiled((name, compiler, flags, source, after): Recipe) -> Option<PathBuf> {
    let (tool, version) = match compiler {
        "go" => ("go build", "version"),
        compiler => (compiler, "--version"),
    };
    if !has_tool(compiler, &[version]) || after.contains("xz") && !has_tool("xz", &["--version"]) {
        return None;
    }
    let path = target_tmpdir().join(format!("who-{}", name.replace(' ', "-")));
    let mut shell = Command::new("sh");
    shell.args([
        "-e",
        "-c",
        &format!("{tool} {flags} -o \"$P\" {source}\ncd \"${{P%/*}}\"\n{after}"),
    ]);
    shell.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sources"));
    let has_cgo = flags.contains("-linkmode=external");
    shell
        .env("P", &path)
        .env("CGO_ENABLED", if has_cgo { "1" } else { "0" })
        .env("GO111MODULE", "off");
    let output = shell.output().unwrap();
    assert!(
        output.status.success(),
        "{name}: {tool} {flags}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Some(path)
}

/// Returns the address of a function, from the output of nm(1) in the file `$P.nm`.
pub(crate) fn address_of(path: &Path, function: &str) -> u64 {
    let table = fs::read_to_string(path.with_extension("nm")).unwrap();
    let line = table
        .lines()
        .find_map(|line| line.strip_suffix(function)?.strip_suffix(" T "));
    u64::from_str_radix(line.unwrap(), 16).unwrap()
}
