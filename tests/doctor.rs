//! The doctor tells the truth: what it says of each read is what follows from the clock source and the kernel's version.

#![allow(clippy::duplicate_mod, reason = "the tests and the doctor share the CPUs")]

#[path = "../examples/doctor/main.rs"]
#[allow(dead_code, reason = "it is a program, whose main is not called here")]
mod doctor;
mod support;

use std::env::{self, consts::ARCH};
use std::fs;
use std::io::{BufRead as _, BufReader, ErrorKind};
use std::process::{Command, Output, Stdio};

use support::{not_run_here, oracle};

const ARGUMENTS: &str = "VDSO_TIME_TEST_DOCTOR";

/// The test that is the doctor where it is told so.
const HOST: &str = "unknown_arguments_are_errors";

/// What the doctor prints comes behind this.
const START: &str = "<<< doctor >>>\n";

/// The doctor as a process of its own: this binary again.
fn command(wrapper: &[&str], arguments: &str) -> Command {
    let this = env::current_exe().unwrap();
    let mut words = wrapper.iter().map(Into::into).chain([this.into_os_string()]);
    let mut command = Command::new(words.next().unwrap());
    command.args(words).args(["--exact", HOST, "--nocapture", "--test-threads=1"]);
    command.env(ARGUMENTS, arguments);
    command
}

/// What the doctor leaves with, and what it prints.
fn run(wrapper: &[&str], arguments: &str) -> Option<(i32, String, String)> {
    let Output { status, stdout, stderr } = match command(wrapper, arguments).output() {
        Ok(output) => output,
        Err(error) => {
            let missing = wrapper.first().copied().unwrap_or("exec");
            not_run_here(missing, format!("{missing}: {error}"));
            return None;
        }
    };
    let [out, err] = [stdout, stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    let code = status.code().unwrap_or_else(|| panic!("{arguments}: {status}\n{out}{err}"));
    let (_, out) = out.split_once(START).unwrap_or_else(|| panic!("{arguments}: {status}\n{out}{err}"));
    Some((code, out.to_owned(), err))
}

/// A member of one of the lines of the JSON, without its quotes.
fn member<'a>(line: &'a str, name: &str) -> &'a str {
    let (_, value) = line.split_once(&format!("\"{name}\": ")).unwrap_or_else(|| panic!("{name} in {line}"));
    value.split([',', '}']).next().unwrap().trim_matches('"')
}

/// Whether the kernel is of this version, or a later one.
fn kernel_is(major: u32, minor: u32) -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().unwrap_or(0));
    (numbers.next().unwrap(), numbers.next().unwrap()) >= (major, minor)
}

/// Where a clock is read, as the kernel's lib/vdso/gettimeofday.c has it since 5.3 (arm since 5.5); of older ones,
/// and of clocks that only some kernels have, nothing.
fn expected(clock: &str, counter: bool) -> Option<&'static str> {
    let has_vdso = oracle::sysinfo_ehdr() != 0;
    let place = |in_user_space| Some(if in_user_space { "user space" } else { "kernel" });
    match clock {
        "CLOCK_REALTIME" | "CLOCK_MONOTONIC" => place(counter),
        "CLOCK_MONOTONIC_RAW" | "CLOCK_BOOTTIME" | "CLOCK_TAI" if kernel_is(5, 5) => place(counter),
        "CLOCK_REALTIME_COARSE" | "CLOCK_MONOTONIC_COARSE" => place(has_vdso),
        "CLOCK_PROCESS_CPUTIME_ID" | "CLOCK_THREAD_CPUTIME_ID" => place(false),
        _ => None,
    }
}

#[test]
fn each_read_is_where_the_clock_source_has_it() {
    let Some(counter) = oracle::counter_is_in_user_space() else { return };
    for method in ["dispatch", "seccomp"] {
        let Some((status, json, error)) = run(&[], &format!("--json --method={method}")) else { return };
        if status != 0 {
            not_run_here(method, error);
            continue;
        }
        let mut seen = 0;
        for line in json.lines().filter(|line| line.starts_with("{\"function\"")) {
            let expected = match member(line, "function") {
                "clock_gettime" => expected(member(line, "clock"), counter),
                "clock_getres" if kernel_is(5, 5) && oracle::sysinfo_ehdr() != 0 => {
                    // It is a constant of the kernel's, whatever the clock source.
                    expected(member(line, "clock"), true)
                }
                "gettimeofday" => expected("CLOCK_REALTIME", counter),
                "time" => expected("CLOCK_REALTIME_COARSE", counter),
                "getcpu" if ARCH == "x86_64" => expected("CLOCK_REALTIME_COARSE", counter),
                _ => None,
            };
            let Some(expected) = expected else { continue };
            assert_eq!(member(line, "place"), expected, "{method}: {line}");
            if oracle::sysinfo_ehdr() != 0 {
                assert_eq!(member(line, "evidence"), "proved", "{method}: {line}");
                let count = |name| member(line, name).parse::<u32>().unwrap();
                assert_eq!(count("entered"), if expected == "kernel" { count("reads") } else { 0 }, "{line}");
                assert!(expected == "kernel" || count("reads") >= 1000, "{line}");
                assert_eq!(count("outside"), 0, "{line}");
            }
            seen += 1;
        }
        assert!(seen >= 8, "{json}");
        let found = format!("\"found\": {}", oracle::sysinfo_ehdr() != 0);
        assert!(json.contains(&found), "{json}");
    }
}

#[test]
fn the_status_is_what_was_required() {
    let Some(counter) = oracle::counter_is_in_user_space() else { return };
    let Some((0, plain, _)) = run(&[], "") else { return not_run_here("exec", "the doctor does not run") };
    if !plain.contains("proved for these reads, now") {
        return not_run_here("dispatch", "nothing can be proved");
    }
    let (usual, coarse) = (i32::from(!counter), i32::from(oracle::sysinfo_ehdr() == 0));
    for (arguments, expected) in [
        ("--require-user-space", usual),
        ("--require-user-space=REALTIME,MONOTONIC", usual),
        ("--require-user-space CLOCK_MONOTONIC --json", usual),
        ("--require-user-space=gettimeofday", usual),
        ("--require-user-space=5,monotonic_coarse,time", coarse),
        ("--require-user-space=2", 1),
        ("--require-user-space=MONOTONIC_COARSE,THREAD_CPUTIME_ID", 1),
        // No kernel has clock 10, so it is neither; and one that enters the kernel decides.
        ("--require-user-space=10", 2),
        ("--require-user-space=10,2", 1),
        ("--require-user-space=time,10", if coarse == 1 { 1 } else { 2 }),
        // Time is no proof.
        ("--require-user-space --method=timing", if oracle::sysinfo_ehdr() == 0 { 1 } else { 2 }),
    ] {
        let (status, out, error) = run(&[], arguments).unwrap();
        assert_eq!(status, expected, "{arguments}\n{out}{error}");
    }
}

#[test]
fn unknown_arguments_are_errors() {
    if let Ok(arguments) = env::var(ARGUMENTS) {
        print!("\n{START}");
        let status = doctor::run(arguments.split_whitespace().map(Into::into));
        std::process::exit(status.into());
    }
    let unknown = ["--jsn", "-v", "extra", "--json=yes", "--help=1", "--method", "--method=guess"];
    for arguments in unknown.into_iter().chain(["--require-user-space=", "--require-user-space=REALTIM"]) {
        let Some((status, out, error)) = run(&[], arguments) else { return };
        assert_eq!((status, &*out), (64, ""), "{arguments}");
        assert!(error.contains("Usage: doctor"), "{arguments}: {error}");
    }
    let (status, out, error) = run(&[], "--help").unwrap();
    assert_eq!((status, &*error), (0, ""));
    assert!(out.contains("Usage: doctor"));
}

#[test]
fn the_json_is_json() {
    let Some((0, json, _)) = run(&[], "--json") else { return };
    let mut python = match Command::new("python3")
        .args(["-c", "import json, sys; print(len(json.load(sys.stdin)['reads']))"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
    {
        Ok(python) => python,
        Err(error) => return not_run_here("python3", format!("python3: {error}")),
    };
    std::io::Write::write_all(&mut python.stdin.take().unwrap(), json.as_bytes()).unwrap();
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success(), "{json}");
    let reads: usize = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
    assert!(reads >= 3 + 12 + 12, "{json}");
}

#[test]
fn under_valgrind_it_says_that_the_vdso_is_hidden() {
    let Some((status, out, _)) = run(&["valgrind", "-q"], "--require-user-space") else { return };
    assert!(out.contains("valgrind hides the vDSO"), "{out}");
    assert_eq!(status, 1, "{out}");
}

#[test]
fn it_has_colours_on_a_terminal_alone() {
    let Some((0, plain, _)) = run(&[], "") else { return };
    assert!(!plain.contains('\x1b'), "{plain:?}");
    let this = env::current_exe().unwrap();
    let line = format!("{} --exact {HOST} --nocapture --test-threads=1", this.display());
    for (no_color, has_colours) in [("", true), ("1", false)] {
        // script(1) gives it a terminal.
        let mut script = Command::new("script");
        script.args(["-qec", &line, "/dev/null"]).env(ARGUMENTS, "").env("NO_COLOR", no_color);
        match script.stdin(Stdio::null()).output() {
            Ok(output) => {
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                let text = text.split_once(START.trim_end()).unwrap_or_else(|| panic!("{text}")).1;
                assert!(text.contains("verdict"), "{text}");
                assert_eq!(text.contains('\x1b'), has_colours, "{text:?}");
            }
            Err(error) => not_run_here("script", format!("script: {error}")),
        }
    }
}

#[test]
fn a_reader_that_leaves_early_hears_no_panic() {
    let child = command(&[], "").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) if error.kind() == ErrorKind::NotFound => panic!("{error}"),
        Err(error) => return not_run_here("exec", error),
    };
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while line != START {
        line.clear();
        assert_ne!(out.read_line(&mut line).unwrap(), 0, "it does not start");
    }
    drop(out);
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(2));
}
