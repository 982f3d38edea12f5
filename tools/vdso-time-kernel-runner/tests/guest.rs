//! Runs an ordinary crate in a guest. Its tests are in tests/guest/ordinary.rs.

mod common;

use std::env;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, UNIX_EPOCH};

use common::{has_tool, not_run_here};

/// The machine whose programs the installed compiler builds.
const MACHINE: &str = "x86_64@7";

/// The status if the mirror cannot provide what the machine needs.
const NOT_FETCHED: i32 = 75;

const MANIFEST: &str = r#"
[package]
name = "ordinary"
version = "0.0.0"
edition = "2024"

[[bin]]
name = "ordinary"
path = "src/main.rs"

[[bin]]
name = "unnamed"
path = "src/main.rs"

[workspace]
"#;

const PROGRAM: &str = r#"fn main() { println!("the program"); }"#;

const TESTS: &str = include_str!("guest/ordinary.rs");

/// Creates the crate, and beside it the file that its tests name.
fn create(directory: &Path) -> PathBuf {
    let package = directory.join("package");
    for (path, text) in [
        ("beside/file.txt", "beside\n"),
        ("licence", "licence\n"),
        ("package/Cargo.toml", MANIFEST),
        ("package/src/main.rs", PROGRAM),
        ("package/tests/ordinary.rs", TESTS),
        ("package/fixtures/plain.txt", "plain\n"),
        ("package/fixtures/.dot.txt", ""),
        ("package/fixtures/.hidden/file.txt", ""),
        ("package/fixtures/target/inner.txt", ""),
        ("package/fixtures/with space é.txt", ""),
        ("package/fixtures/script.sh", "#!/bin/sh\nexit 0\n"),
    ] {
        let path = directory.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let fixtures = package.join("fixtures");
    fs::create_dir_all(fixtures.join("empty")).unwrap();
    fs::write(fixtures.join("large"), vec![0; 3 << 20]).unwrap();
    let _ = symlink("plain.txt", fixtures.join("link.txt"));
    let _ = symlink("../../licence", fixtures.join("licence"));
    let script = fixtures.join("script.sh");
    fs::set_permissions(script, Permissions::from_mode(0o755)).unwrap();
    let plain = File::options()
        .append(true)
        .open(fixtures.join("plain.txt"));
    let plain = plain.unwrap();
    plain
        .set_permissions(Permissions::from_mode(0o600))
        .unwrap();
    plain
        .set_modified(UNIX_EPOCH + Duration::from_secs(1_234_567_890))
        .unwrap();
    package
}

/// The output of the runner, and whether it succeeded.
struct Ended {
    is_success: bool,
    output: String,
}

/// Runs the runner in a directory, or records the test as not run.
fn run_in(directory: &Path, words: &[&str], limit: &str) -> Option<Ended> {
    if !cfg!(target_arch = "x86_64") {
        not_run_here("the guest is for x86_64");
        return None;
    }
    if !has_tool("apt-get", &["--version"]) {
        return None;
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_vdso-time-kernel-runner"));
    command
        .args(words)
        .current_dir(directory)
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("RUST_TEST_THREADS")
        .env("VDSO_TIME_GUEST_TIMEOUT", limit);
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let output = String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned();
    let has_no_mirror = output.contains("apt's sources name no Debian mirror");
    if status.code() == Some(NOT_FETCHED) || has_no_mirror {
        not_run_here(format!("{MACHINE} cannot be fetched: {output}"));
        return None;
    }
    Some(Ended {
        is_success: status.success(),
        output,
    })
}

/// Runs the crate's tests in a guest, with these arguments of libtest.
fn run(arguments: &[&str], limit: &str) -> Option<Ended> {
    // The tests build in the same directory, so they run one after the other.
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guest");
    fs::create_dir_all(&directory).unwrap();
    let lock = File::create(directory.join("lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let package = create(&directory);
    let mut words = vec!["on", MACHINE, "test", "--test", "ordinary", "--"];
    words.extend(arguments);
    run_in(&package, &words, limit)
}

#[test]
fn the_tests_of_an_ordinary_crate_pass() {
    let Some(Ended { is_success, output }) = run(&[], "300") else {
        return;
    };
    let count = TESTS.matches("#[test]").count() - TESTS.matches("#[ignore").count();
    let result = format!("test result: ok. {count} passed; 0 failed");
    assert!(is_success && output.contains(&result), "{output}");
}

#[test]
fn a_test_that_hangs_is_named_after_the_results_of_the_others() {
    let Some(Ended { is_success, output }) = run(&["--include-ignored", "a_shell", "hangs"], "60")
    else {
        return;
    };
    assert!(!is_success, "{output}");
    assert!(
        output.contains("test a_shell_and_the_usual_commands_run ... ok"),
        "{output}"
    );
    let error = ": the test hangs: still running after 60 s";
    assert!(output.contains(error), "{output}");
}

#[test]
fn a_test_that_uses_all_memory_is_named() {
    let Some(Ended { is_success, output }) = run(&["--ignored", "memory"], "300") else {
        return;
    };
    assert!(!is_success, "{output}");
    let error = ": the test uses_all_memory: the kernel killed a process, because the 512 MiB of";
    assert!(output.contains(error), "{output}");
}

/// Runs a command of busybox in a guest. The working directory contains files of these sizes, and
/// no package. Nothing is beside it, because busybox contains paths such as `../sysdeps`, and the
/// guest also gets what such a path leads to.
fn busybox(name: &str, files: &[(&str, u64)], command: &[&str]) -> Option<Ended> {
    let name = format!("{name}-{}", std::process::id());
    let scratch = env::temp_dir().join(name);
    let directory = scratch.join("package");
    fs::create_dir_all(&directory).unwrap();
    for (name, size) in files {
        let file = File::create(directory.join(name)).unwrap();
        file.set_len(*size).unwrap();
    }
    // busybox is a static program, which the runner has fetched as the guest's shell.
    let home = env::var_os("HOME").unwrap_or_default();
    let cache = match env::var_os("XDG_CACHE_HOME") {
        Some(cache) => PathBuf::from(cache),
        None => Path::new(&home).join(".cache"),
    };
    let program = cache.join("vdso-time/guest-amd64-7/busybox");
    let mut words = vec!["run", MACHINE, program.to_str().unwrap()];
    words.extend(command);
    let result = run_in(&directory, &words, "300");
    fs::remove_dir_all(&scratch).unwrap();
    result
}

#[test]
fn a_program_runs_where_there_is_no_package() {
    let result = busybox("no-package", &[("file", 0)], &["ls", "-a"]);
    if let Some(Ended { is_success, output }) = result {
        assert!(
            is_success && output.starts_with(".\n..\nfile\n"),
            "{output}"
        );
    }
}

/// Gives the guest nearly as much as it holds, and a file that is too large.
#[test]
fn a_guest_holds_224_mib_and_the_largest_files_stay_out() {
    let files = [("held", 220 << 20), ("large", 230 << 20)];
    let result = busybox("large", &files, &["wc", "-c", "held", "large"]);
    if let Some(Ended { output, .. }) = result {
        assert!(output.contains("230686720 held\n"), "{output}");
        assert!(output.contains("large: No such file"), "{output}");
        let message = "a guest holds 224 MiB of files; left out of the package: ";
        assert!(output.contains(message), "{output}");
    }
}
