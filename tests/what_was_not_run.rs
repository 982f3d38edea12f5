//! The last test program of `cargo test`: it prints how many tests the others did not run on this
//! machine. Each of them has said so itself, but the output of a test that passes is not shown.

use std::env;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::Command;
use std::thread;

use test_support::child::{runs_alone, this_program};
use test_support::{has_tool, not_run, not_run_here};

const COUNT: &str = "what_was_not_run_is_counted";
const COUNTED: &str = "Tests, or parts of tests, that were not run here: ";
const SAY: &str = "VDSO_TIME_TEST_SAY";

#[test]
fn what_was_not_run_is_counted() {
    let lines = not_run::take();
    for line in &lines {
        println!("{line}");
    }
    if !lines.is_empty() {
        // Not by `println!`, whose output is captured.
        let _ = writeln!(
            io::stdout(),
            "{COUNTED}{}. `cargo test -- --show-output` says which, and why.",
            lines.len()
        );
    }
}

/// Runs these tests of this program one after the other in a shell, as cargo runs its test
/// programs, and returns what they print. `reason` is what they say.
fn shell(reason: &str, tests: &[&str]) -> Option<String> {
    let commands: String = tests
        .iter()
        .map(|test| format!("\"$0\" --exact {test} || exit 9\n"))
        .chain(["exit 0\n".into()])
        .collect();
    let mut shell = Command::new("sh");
    shell.args(["-c", &commands]).arg(this_program()).env(SAY, reason).env_remove(not_run::RECORD);
    match shell.output() {
        Ok(output) if output.status.success() => String::from_utf8(output.stdout).ok(),
        Ok(output) => panic!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr)),
        Err(error) => {
            not_run_here("sh", format!("sh: {error}"));
            None
        }
    }
}

/// Whether this program can start itself; says so if it cannot, as under an emulator.
fn can_start_itself() -> bool {
    let can = runs_alone(COUNT);
    if !can {
        not_run_here("exec", "the kernel cannot run this program");
    }
    can
}

fn counts(output: &str) -> Vec<&str> {
    output.lines().filter_map(|line| line.split_once(COUNTED)?.1.split('.').next()).collect()
}

#[test]
fn each_invocation_counts_its_own_once() {
    const THIS: &str = "each_invocation_counts_its_own_once";
    const THREADS: usize = 8;
    if let Ok(reason) = env::var(SAY) {
        return thread::scope(|scope| {
            for number in 0..THREADS {
                let thread = thread::Builder::new().name(format!("test {number}"));
                let say = || (0..50).for_each(|_| not_run(&reason));
                thread.spawn_scoped(scope, say).unwrap();
            }
        });
    }
    if !can_start_itself() {
        return;
    }
    if let Err(error) = OpenOptions::new().append(true).create(true).open(&*not_run::FILE) {
        return not_run(format!("nothing can be recorded: {}: {error}", not_run::FILE.display()));
    }
    // Another invocation, which ends before it counts.
    let Some(output) = shell("the first", &[THIS]) else { return };
    assert!(counts(&output).is_empty(), "{output}");
    // Each line is said by two programs, fifty times, by eight tests at once.
    let output = shell("the second,\nin two lines", &[THIS, THIS, COUNT, COUNT]).unwrap();
    assert_eq!(counts(&output), [THREADS.to_string()], "{output}");
    let output = shell("", &[COUNT]).unwrap();
    assert!(counts(&output).is_empty(), "{output}");
}

#[test]
fn a_missing_tool_is_named_with_its_package() {
    if env::var_os(SAY).is_some() {
        assert!(!has_tool(&["readelf", "--version"]));
        return;
    }
    if !can_start_itself() {
        return;
    }
    let mut this = Command::new(this_program());
    this.args(["--exact", "a_missing_tool_is_named_with_its_package", "--nocapture"]);
    this.env(SAY, "").env("PATH", "").env_remove("VDSO_TIME_TEST_REQUIRES");
    let output = this.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let line = "not run here: readelf is not installed; on Debian: apt-get install binutils\n";
    assert!(text.contains(line), "{text}");
}

/// cargo runs the test programs of a package in the order of their names.
#[test]
fn no_test_program_comes_after_this_one() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    let files = match fs::read_dir(folder) {
        Ok(files) => files.map(|file| file.unwrap().path()),
        Err(error) => return not_run(format!("the sources are not here: {folder}: {error}")),
    };
    let is_program =
        |file: &PathBuf| file.extension() == Some("rs".as_ref()) || file.join("main.rs").exists();
    let last = files.filter(is_program).max().unwrap();
    assert_eq!(last.file_name(), Some("what_was_not_run.rs".as_ref()));
}
