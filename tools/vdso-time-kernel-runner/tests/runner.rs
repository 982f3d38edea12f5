//! Starts the runner as cargo does: what passes through it, and when it ends a program.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A plan that runs programs natively.
const NATIVE: &str = r#"{"qemu": []}"#;

/// A plan that boots a kernel. A shell stands in for QEMU, and ignores its arguments.
const BOOT: &str =
    r#"{"qemu": ["/bin/sh", "-c", "exec sleep 1000"], "init": "/bin/true", "page": 4096}"#;

/// Creates a directory whose name contains a space.
fn directory(name: &str) -> PathBuf {
    let name = format!("{name} {}", std::process::id());
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&directory).unwrap();
    directory
}

/// How a run of the runner ended.
#[derive(Debug, PartialEq)]
struct Ended {
    code: i32,
    output: String,
    errors: String,
}

impl Ended {
    fn new(code: i32, output: &str, errors: &str) -> Self {
        Self {
            code,
            output: output.into(),
            errors: errors.into(),
        }
    }
}

/// Runs a program with its arguments in a runner with this plan and time limit.
fn run(name: &str, plan: &str, limit: &str, words: &[&str]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vdso-time-kernel-runner"));
    command
        .arg("runner")
        .args(words)
        .current_dir(directory(name))
        .env("VDSO_TIME_RUNNER_PLAN", plan)
        .env("VDSO_TIME_GUEST_TIMEOUT", limit);
    let output = command.output().unwrap();
    Ended {
        code: output.status.code().unwrap(),
        output: String::from_utf8(output.stdout).unwrap(),
        errors: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn output_and_status_pass_through() {
    let words = ["/bin/sh", "-c", "echo out; echo err >&2; exit 7"];
    let ended = run("through", NATIVE, "60", &words);
    assert_eq!(ended, Ended::new(7, "out\n", "err\n"));
    // A shell adds 128 to the number of the signal.
    let words = ["/bin/sh", "-c", "kill -SEGV $$"];
    let ended = run("signal", NATIVE, "60", &words);
    assert_eq!(ended.code, 128 + 11);

    let emulator = r#"{"qemu": ["/bin/echo", "an emulator"]}"#;
    let ended = run("emulator", emulator, "60", &["/bin/p", "--x"]);
    assert_eq!(ended.output, "an emulator /bin/p --x\n");
}

#[test]
fn each_program_of_a_list_runs_and_its_status_is_printed() {
    let list = "[\"/bin/sh\", \"-c\", \"echo one; exit 3\"]\n[\"/bin/echo\", \"two\"]\n";
    let mut command = Command::new(env!("CARGO_BIN_EXE_vdso-time-kernel-runner"));
    command.args(["run-all", std::env::consts::ARCH]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(list.as_bytes()).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text, "one\n\n[exit 3] /bin/sh\ntwo\n\n[exit 0] /bin/echo\n");
}

#[test]
fn a_program_and_a_kernel_end_at_the_limit() {
    let console = "; init did not start. The kernel's last lines:\n  ";
    for (plan, words, end) in [
        (NATIVE, &["/bin/sh", "-c", "exec sleep 1000"][..], ""),
        (BOOT, &["/bin/sh"], console),
    ] {
        let limit = "/bin/sh: still running after 1 s; VDSO_TIME_GUEST_TIMEOUT=SECONDS allows more";
        let error = format!("vdso-time-kernel-runner: {limit}{end}\n");
        let ended = run("limit", plan, "1", words);
        assert_eq!(ended, Ended::new(125, "", &error));
    }
}

#[test]
fn a_program_that_a_guest_cannot_hold_is_an_error_before_the_boot() {
    let program = directory("large").join("program");
    let file = File::create(&program).unwrap();
    file.set_len(225 << 20).unwrap();
    let program = program.to_str().unwrap();
    let ended = run("large", BOOT, "60", &[program]);
    fs::remove_file(program).unwrap();
    let error = format!(
        "vdso-time-kernel-runner: a guest holds 224 MiB of files, but the programs and the files \
         beside the package have 226 MiB, of which {program} has 225; run fewer programs at a time, \
         or smaller ones\n"
    );
    assert_eq!(ended, Ended::new(125, "", &error));
}

#[test]
fn a_caller_that_ignores_sigchld_gets_the_status_and_the_program_ignores_it_too() {
    let run = |words: &[&str]| {
        let runner = env!("CARGO_BIN_EXE_vdso-time-kernel-runner");
        let mut command = Command::new("env");
        command
            .args(["--ignore-signal=CHLD", runner, "runner"])
            .args(words)
            .env("VDSO_TIME_RUNNER_PLAN", NATIVE);
        command.output().unwrap()
    };
    let output = run(&["/bin/sh", "-c", "exit 7"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(7), "{errors}");

    let output = run(&["/bin/grep", "SigIgn", "/proc/self/status"]);
    let line = String::from_utf8_lossy(&output.stdout);
    let mask = line.trim_start_matches("SigIgn:").trim();
    let mask = u64::from_str_radix(mask, 16).unwrap();
    assert_ne!(mask & (1 << (17 - 1)), 0, "{line}");
}
