//! The doctor tells the truth: what it says of each read is what follows from the clock source and the kernel's version.

#![cfg(any(target_os = "linux", target_os = "android"))]
#![allow(unsafe_code, reason = "what a child does before its exec")]
#![allow(clippy::duplicate_mod, reason = "the tests and the doctor share the CPUs")]

#[path = "../examples/doctor/main.rs"]
#[allow(dead_code, reason = "it is a program, whose main is not called here")]
mod doctor;
mod support;

use std::env::{self, consts::ARCH};
use std::io::{self, BufRead as _, BufReader, ErrorKind};
use std::mem;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Output, Stdio};
use std::ptr;

use support::{not_run_here, oracle};
use vdso_time::arch::NATIVE;

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
    let works = |tool: &&[&str]| {
        Command::new(tool[0]).args(&tool[1..]).arg("true").output().is_ok_and(|o| o.status.success())
    };
    if let Some(broken) = [wrapper].into_iter().find(|tool| !tool.is_empty() && !works(tool)) {
        not_run_here(broken[0], format!("{} does not work", broken[0]));
        return None;
    }
    let Output { status, stdout, stderr } = match command(wrapper, arguments).output() {
        Ok(output) => output,
        Err(error) => {
            not_run_here("exec", format!("this binary: {error}"));
            return None;
        }
    };
    let [out, err] = [stdout, stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    let code = status.code().unwrap_or_else(|| panic!("{arguments}: {status}\n{out}{err}"));
    match out.split_once(START) {
        Some((_, out)) => Some((code, out.to_owned(), err)),
        // A program of another architecture is not started by every kernel, nor by every tool.
        None if !out.contains("running 1 test") => {
            not_run_here(wrapper.first().copied().unwrap_or("exec"), format!("status {code}: {err}"));
            None
        }
        None => panic!("{arguments}: {status}\n{out}{err}"),
    }
}

/// A member of one of the lines of the JSON, without its quotes.
fn member<'a>(line: &'a str, name: &str) -> &'a str {
    let (_, value) = line.split_once(&format!("\"{name}\": ")).unwrap_or_else(|| panic!("{name} in {line}"));
    value.split([',', '}']).next().unwrap().trim_matches('"')
}

/// Where a clock is read, as the kernel's lib/vdso/gettimeofday.c has it since 5.3 (arm since 5.5); of older ones,
/// and of clocks that only some kernels have, nothing.
fn expected(clock: &str, counter: bool) -> Option<&'static str> {
    let has_vdso = oracle::sysinfo_ehdr() != 0;
    let place = |in_user_space| Some(if in_user_space { "user space" } else { "kernel" });
    match clock {
        "CLOCK_REALTIME" | "CLOCK_MONOTONIC" => place(counter),
        "CLOCK_MONOTONIC_RAW" | "CLOCK_BOOTTIME" | "CLOCK_TAI" if oracle::kernel_is(5, 5) => place(counter),
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
                "clock_getres" if oracle::kernel_is(5, 5) && oracle::sysinfo_ehdr() != 0 => {
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
    let Some((_, plain, _)) = run(&[], "") else { return };
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
        ("--require-user-space=Time,10,10", if coarse == 1 { 1 } else { 2 }),
        ("--require-user-space=999", 2),
        // Time is no proof.
        ("--require-user-space --method=timing", if oracle::sysinfo_ehdr() == 0 { 1 } else { 2 }),
    ] {
        let (status, out, error) = run(&[], arguments).unwrap();
        assert_eq!(status, expected, "{arguments}\n{out}{error}");
    }
}

/// What a sandbox leaves is examined, and what it takes is said; a signal that a parent blocked does not matter.
#[test]
fn a_process_that_was_restricted() {
    let Some(counter) = oracle::counter_is_in_user_space() else { return };
    let Some(abi) = NATIVE.filter(|_| oracle::sysinfo_ehdr() != 0) else {
        return println!("not run here: there is no vDSO, or no table");
    };
    let filter = doctor::proof::filter::denying(abi, &doctor::proof::filter::clock_calls(abi), libc::EPERM);
    let deny = move || doctor::proof::filter::install(&mut filter.clone());
    let block = || {
        // SAFETY: a set of signals is bits.
        let mut sigsys: libc::sigset_t = unsafe { mem::zeroed() };
        // SAFETY: the set is ours.
        unsafe { libc::sigaddset(&raw mut sigsys, libc::SIGSYS) };
        // SAFETY: libc reads the set.
        unsafe { libc::sigprocmask(libc::SIG_BLOCK, &raw const sigsys, ptr::null_mut()) };
        Ok(())
    };
    // Where the vDSO asks the kernel for the time, nobody answers behind the filter.
    for (missing, restrict, expected) in [
        (
            "seccomp",
            Box::new(deny) as Box<dyn Fn() -> io::Result<()> + Send + Sync>,
            if counter { 0 } else { 2 },
        ),
        ("exec", Box::new(block), i32::from(!counter)),
    ] {
        let mut command = command(&[], "--require-user-space");
        // SAFETY: it makes system calls alone, and allocates as much as the child of one thread may.
        unsafe { command.pre_exec(restrict) };
        let output = match command.output() {
            Ok(output) => output,
            Err(error) => return not_run_here(missing, error),
        };
        let text = String::from_utf8_lossy(&output.stdout);
        if !text.contains("proved for these reads, now") {
            return not_run_here("dispatch", format!("nothing can be proved: {}", output.status));
        }
        assert_eq!(output.status.code(), Some(expected), "{missing}: {}\n{text}", output.status);
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
    let Some((status, json, _)) = run(&[], "--json") else { return };
    assert_eq!(status, 0);
    let python_works = Command::new("python3").args(["-c", ""]).output().is_ok_and(|o| o.status.success());
    if !python_works {
        return not_run_here("python3", "python3 does not work");
    }
    let mut python = Command::new("python3")
        .args(["-c", "import json, sys; print(len(json.load(sys.stdin)['reads']))"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    io::Write::write_all(&mut python.stdin.take().unwrap(), json.as_bytes()).unwrap();
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
    let Some((status, plain, _)) = run(&[], "") else { return };
    assert_eq!(status, 0);
    assert!(!plain.contains('\x1b'), "{plain:?}");
    // The path may have spaces in it, or worse.
    let line = format!("\"$DOCTOR\" --exact {HOST} --nocapture --test-threads=1");
    for (no_color, has_colours) in [("", true), ("1", false)] {
        // script(1) gives it a terminal.
        let mut script = Command::new("script");
        script.args(["-qec", &line, "/dev/null"]).env("DOCTOR", env::current_exe().unwrap());
        script.env(ARGUMENTS, "").env("NO_COLOR", no_color);
        match script.stdin(Stdio::null()).output() {
            Ok(output) => {
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                let Some((_, text)) = text.split_once(START.trim_end()) else {
                    return not_run_here("script", format!("script: {} {text}", output.status));
                };
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
        if out.read_line(&mut line).unwrap() == 0 {
            return not_run_here("exec", "it does not start");
        }
    }
    drop(out);
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    // It may have been done before the reader left.
    assert!([Some(0), Some(2)].contains(&output.status.code()), "{}", output.status);
}
