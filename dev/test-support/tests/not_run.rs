//! Checks that were not run are counted.

#![cfg(any(target_os = "linux", target_os = "android"))]

use std::env;
use std::process::Command;

use test_support::{child, not_run_here};

#[test]
#[ignore = "the next test starts it"]
fn one_check_is_not_run_here_and_two_in_forked_children() {
    for number in 0..2 {
        child::forked(|| not_run_here(format!("check {number} of a child")));
    }
    not_run_here("a check of the test");
}

#[test]
fn the_sum_includes_the_checks_of_forked_children() {
    let mut program = Command::new(env::current_exe().unwrap());
    program
        .args(["--ignored", "one_check_is_not_run_here"])
        .env_remove("VDSO_TIME_SKIPS");
    let output = program.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    assert!(text.contains("3 checks were not run here; "), "{text}");
}
