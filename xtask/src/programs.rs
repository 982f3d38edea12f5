//! The programs that run on a machine of the matrix.

use anyhow::{Context as _, Result};
use serde_json::Value;
use vdso_time_kernel_runner::machine::{Machine, Runner};
use vdso_time_kernel_runner::runner::Program;
use vdso_time_kernel_runner::setup::Setup;

use crate::workspace;

/// The doctor's program. Its unit tests have the name of the target.
pub(crate) const DOCTOR: &str = "doctor";

/// The arguments of cargo that build the tests, and the doctor for its own tests.
const BUILD: &str = "test --no-run --quiet --tests \
    --package vdso-time-core-tests --package vdso-time-counter --package vdso-doctor";

/// The architectures whose registers vdso-who reads.
const WHO: &[&str] = &["x86_64", "aarch64"];

/// Test programs that run only natively, because they compile programs or run the machine's own.
const NATIVE_ONLY: &[&str] = &["codegen"];

/// Builds the programs. The doctor is before the tests, because one may change the clock source.
pub(crate) fn programs(machine: &Machine, setup: &Setup) -> Result<Vec<Program>> {
    let sh = workspace::shell()?;
    let who = WHO
        .contains(&machine.arch.name)
        .then_some(["--package", "vdso-who"]);
    let cargo = setup
        .cargo(&sh)
        .args(BUILD.split(' '))
        .args(who.into_iter().flatten());
    let messages = cargo
        .arg("--message-format=json-render-diagnostics")
        .read()?;
    let built = messages
        .lines()
        .filter_map(|message| program(machine, message));
    let (doctor, tests): (Vec<_>, Vec<_>) = built.partition(|program| program.name == DOCTOR);
    doctor.first().context("cargo built no doctor")?;
    Ok([doctor, tests].concat())
}

/// Returns the program that a message of cargo names, if the machine runs it.
fn program(machine: &Machine, message: &str) -> Option<Program> {
    let message: Value = serde_json::from_str(message).ok()?;
    let path = message["executable"].as_str()?.to_owned();
    let name = message["target"]["name"].as_str()?;
    let (name, argument) = match (message["profile"]["test"] == true, name) {
        (true, test) => (test, "--show-output"),
        (false, "vdso-doctor") => (DOCTOR, "--json"),
        // The program of vdso-who, which its own tests start.
        (false, _) => return None,
    };
    let runs = machine.runner == Runner::Native || !NATIVE_ONLY.contains(&name);
    runs.then(|| Program {
        name: name.to_owned(),
        path,
        arguments: vec![argument.to_owned()],
    })
}
