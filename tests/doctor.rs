//! The doctor tells the truth: what it says of each read is what follows from the clock source and the kernel's version.

#![cfg(any(target_os = "linux", target_os = "android"))]
#![allow(unsafe_code, reason = "what a child does before its exec")]
#![allow(clippy::duplicate_mod, reason = "the tests and the doctor share the CPUs")]

#[path = "support/doctor.rs"]
mod doctor;

use std::env::consts::ARCH;
use std::io;
use std::mem;
use std::os::unix::process::CommandExt as _;
use std::ptr;

use doctor::program::proof::filter;
use doctor::{command, run};
use test_support::{not_run, not_run_here, oracle};
use vdso_time::arch::NATIVE;

/// The test that is the doctor where it is told so.
const HOST: &str = "unknown_arguments_are_errors";

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
        return not_run("there is no vDSO, or no table");
    };
    let filter = filter::denying(abi, &filter::clock_calls(abi), libc::EPERM);
    let deny = move || filter::install(&mut filter.clone());
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
    doctor::be_the_doctor_if_told();
    let unknown = ["--jsn", "-v", "extra", "--json=yes", "--help=1", "--method", "--method=guess"];
    for arguments in unknown.into_iter().chain(["--require-user-space=", "--require-user-space=REALTIM"]) {
        let Some((status, out, error)) = run(&[], arguments) else { return };
        assert_eq!((status, &*out), (64, ""), "{arguments}");
        assert!(error.contains("Usage: doctor"), "{arguments}: {error}");
    }
}

#[test]
fn under_valgrind_it_says_that_the_vdso_is_hidden() {
    let Some((status, out, _)) = run(&["valgrind", "-q"], "--require-user-space") else { return };
    assert!(out.contains("valgrind hides the vDSO"), "{out}");
    assert_eq!(status, 1, "{out}");
}
