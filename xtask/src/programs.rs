//! The programs that run on a machine of the matrix.

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::{runner, workspace};

/// The doctor's program. Its unit tests have the name of the target.
pub(crate) const DOCTOR: &str = "doctor";

/// The arguments of cargo that build the tests, and the doctor for its own tests.
const BUILD: &str = "test --no-run --quiet --tests --message-format=json-render-diagnostics \
    --package vdso-time-core-tests --package vdso-time-counter --package vdso-doctor";

/// The architectures whose registers vdso-who reads.
const WHO: [&str; 2] = ["x86_64", "aarch64"];

/// Test programs that run only natively, because they compile programs or run the machine's own.
const NATIVE_ONLY: [&str; 1] = ["codegen"];

#[derive(Clone)]
pub(crate) struct Program {
    /// The name of cargo's target, or [`DOCTOR`].
    pub(crate) name: String,
    pub(crate) path: String,
    pub(crate) arguments: Vec<String>,
}

/// Builds the programs. The doctor is before the tests, because one may change the clock source.
pub(crate) fn programs(machine: &str) -> Result<Vec<Program>> {
    let mut cargo = runner::on(machine)?;
    cargo.args(BUILD.split(' ')).current_dir(workspace::root());
    if WHO.contains(&runner::arch(machine)) {
        cargo.args(["--package", "vdso-who"]);
    }
    let messages = runner::read(&mut cargo)?;
    let mut doctor = None;
    let mut tests = Vec::new();
    for message in messages.lines() {
        match program(message) {
            Some(program) if program.name == DOCTOR => doctor = Some(program),
            Some(program) if is_run(&program, machine) => tests.push(program),
            _ => {}
        }
    }
    let mut programs = vec![doctor.context("cargo built no doctor")?];
    programs.extend(tests);
    Ok(programs)
}

fn is_run(program: &Program, machine: &str) -> bool {
    runner::is_native(machine) || !NATIVE_ONLY.contains(&&*program.name)
}

/// Returns the program that a message of cargo names, if it is the doctor or has tests.
fn program(message: &str) -> Option<Program> {
    let message: Value = serde_json::from_str(message).ok()?;
    let path = message["executable"].as_str()?;
    let target = message["target"]["name"].as_str()?;
    let is_test = message["profile"]["test"] == true;
    let (name, argument) = match target {
        test if is_test => (test, "--show-output"),
        "vdso-doctor" => (DOCTOR, "--json"),
        // A program of vdso-who, which its own tests start.
        _ => return None,
    };
    Some(Program {
        name: name.to_owned(),
        path: path.to_owned(),
        arguments: vec![argument.to_owned()],
    })
}
