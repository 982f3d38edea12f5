//! `cargo xtask check`: type-checks and lints the library for every target in the table. A warning is a failure.

use std::collections::{HashSet, VecDeque};
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::core_library;
use crate::process::output;
use crate::targets::{FeatureSet, TARGETS, Target};
use crate::toolchain::Compiler;
use crate::{Error, workspace};

/// Making `core` takes half a gigabyte; more at a time would be unkind to small machines.
const MOST_AT_ONCE: usize = 4;

/// What came of one target and feature set.
enum Outcome {
    Checked,
    Failed { diagnostics: String },
    NotRun { why: String },
}

pub(crate) fn run(names: &[String]) -> Result<ExitCode, Error> {
    let targets = choose(names)?;
    let compiler = Compiler::find()?;
    let sysroot = compiler.sysroot()?;
    let missing = without_library(&compiler, &sysroot, &targets);

    let mut told = HashSet::new();
    let (mut checked, mut failed, mut not_run) = (0, 0, 0);
    for target in targets {
        let why = missing.iter().find(|(triple, _)| *triple == target.triple);
        for features in target.features {
            let outcome = match why {
                Some((_, why)) => Outcome::NotRun { why: why.clone() },
                None => check(&compiler, target, features)?,
            };
            let counter = match &outcome {
                Outcome::Checked => &mut checked,
                Outcome::Failed { .. } => &mut failed,
                Outcome::NotRun { .. } => &mut not_run,
            };
            *counter += 1;
            // The same fault tends to show on every target: once is enough.
            let diagnostics = report(target.triple, features.1, outcome);
            if !diagnostics.is_empty() && told.insert(diagnostics.clone()) {
                println!("{diagnostics}");
            }
        }
    }
    println!("{checked} checked, {failed} failed, {not_run} not run here");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn choose(names: &[String]) -> Result<Vec<&'static Target>, Error> {
    for name in names {
        if !TARGETS.iter().any(|target| target.triple.contains(name)) {
            return Err(Error::Usage(format!("no target's name contains `{name}`")));
        }
    }
    let wanted = |target: &&Target| names.is_empty() || names.iter().any(|name| target.triple.contains(name));
    Ok(TARGETS.iter().filter(wanted).collect())
}

/// Makes the libraries that are not there, several at a time; gives those that cannot be had.
fn without_library(compiler: &Compiler, sysroot: &Path, targets: &[&Target]) -> Vec<(&'static str, String)> {
    let queue: Mutex<VecDeque<&str>> = Mutex::new(targets.iter().map(|t| t.triple).collect());
    let missing = Mutex::new(Vec::new());
    let work = || {
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some(triple) = next else { break };
            if let Err(why) = core_library::ensure(compiler, sysroot, triple) {
                let mut missing = missing.lock().unwrap_or_else(PoisonError::into_inner);
                missing.push((triple, why));
            }
        }
    };
    let workers = thread::available_parallelism().map_or(1, |n| n.get().min(MOST_AT_ONCE));
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(work);
        }
    });
    missing.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn check(compiler: &Compiler, target: &Target, features: &FeatureSet) -> Result<Outcome, String> {
    let output = output(
        compiler
            .clippy("check")
            .current_dir(workspace::root())
            .args(["check", "--quiet", "--lib", "--package", workspace::LIBRARY])
            .args(["--target", target.triple])
            .args(features.0),
    )?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok(if output.status.success() && text.is_empty() {
        Outcome::Checked
    } else {
        Outcome::Failed { diagnostics: text }
    })
}

/// Prints the line, and gives what the compiler said if anything.
fn report(triple: &str, features: &str, outcome: Outcome) -> String {
    let (word, why, diagnostics) = match outcome {
        Outcome::Checked => ("checked", String::new(), String::new()),
        Outcome::Failed { diagnostics } => ("failed", String::new(), diagnostics),
        Outcome::NotRun { why } => ("not run here", format!(": {why}"), String::new()),
    };
    println!("{word:<13} {triple:<36} {features}{why}");
    diagnostics.trim_end().to_string()
}
