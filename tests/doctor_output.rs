//! What the doctor prints goes where it is to go; where that fails it says so, and its status does.

#![cfg(any(target_os = "linux", target_os = "android"))]
#![allow(unsafe_code, reason = "a descriptor is closed")]
#![allow(clippy::duplicate_mod, reason = "the tests and the doctor share the CPUs")]

#[path = "support/doctor.rs"]
mod doctor;

use std::io::{self, BufRead as _, BufReader, ErrorKind};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Output, Stdio};

use doctor::{ARGUMENTS, BROKEN_PIPE, OUTPUT, START, command, run};
use test_support::child::this_program;
use test_support::{has_tool, not_run_here};

/// The test that is the doctor where it is told so.
const HOST: &str = "the_help_is_printed";

#[test]
fn the_help_is_printed() {
    doctor::be_the_doctor_if_told();
    let Some((status, out, error)) = run(&[], "--help") else { return };
    assert_eq!((status, &*error), (0, ""));
    assert!(out.contains("Usage: doctor"));
    assert!(out.contains("cargo install --path . --example doctor"), "{out}");
}

#[test]
fn the_json_is_json() {
    let Some((status, json, _)) = run(&[], "--json") else { return };
    assert_eq!(status, 0);
    if !has_tool(&["python3", "-c", ""]) {
        return;
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
fn it_has_colours_on_a_terminal_alone() {
    let Some((status, plain, _)) = run(&[], "") else { return };
    assert_eq!(status, 0);
    assert!(!plain.contains('\x1b'), "{plain:?}");
    if !has_tool(&["script", "-qec", "true", "/dev/null"]) {
        return;
    }
    // The path may have spaces in it, or worse.
    let line = format!("\"$DOCTOR\" --exact {HOST} --nocapture --test-threads=1");
    for (no_color, has_colours) in [("", true), ("1", false)] {
        // script(1) gives it a terminal.
        let mut script = Command::new("script");
        script.args(["-qec", &line, "/dev/null"]).env("DOCTOR", this_program());
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

/// What the doctor does whose standard output is another.
fn run_into(output: &str, arguments: &str) -> Output {
    command(&[], arguments).env(OUTPUT, output).output().unwrap()
}

/// All that can be asked for.
const ALL: [&str; 4] = ["", "--json", "--help", "--require-user-space=MONOTONIC_COARSE"];

#[test]
fn a_full_device_is_status_2_and_an_error() {
    if run(&[], "--help").is_none() {
        return;
    }
    for arguments in ALL {
        let output = run_into("/dev/full", arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {error}");
        assert!(error.starts_with("doctor: cannot write the report: No space left on device"), "{error}");
    }
}

/// std's start opens /dev/null in the place of a closed descriptor, so that writing to it succeeds.
#[test]
fn a_closed_standard_output_is_status_2_and_an_error() {
    if run(&[], "--help").is_none() {
        return;
    }
    for arguments in ALL {
        let mut closed = command(&[], arguments);
        let close = || {
            // SAFETY: the child of one thread, which is about to become the doctor, has it.
            unsafe { libc::close(libc::STDOUT_FILENO) };
            Ok(())
        };
        // SAFETY: it makes one system call.
        let output = unsafe { closed.pre_exec(close) }.output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {error}");
        assert!(error.starts_with("doctor: cannot write the report: standard output is closed"), "{error}");
    }
}

#[test]
fn a_broken_pipe_is_status_2_and_no_error() {
    if run(&[], "--help").is_none() {
        return;
    }
    for arguments in ALL {
        let output = run_into(BROKEN_PIPE, arguments);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments}");
        assert_eq!(output.status.code(), Some(2), "{arguments}");
    }
}

/// Who does not look at the report has its status all the same.
#[test]
fn the_null_device_takes_the_report() {
    if run(&[], "--help").is_none() {
        return;
    }
    for arguments in ["", "--help"] {
        assert_eq!(run_into("/dev/null", arguments).status.code(), Some(0), "{arguments}");
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
