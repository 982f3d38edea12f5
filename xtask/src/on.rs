//! `cargo xtask on`: runs cargo with a machine's compiler, linker and runner.

use std::process::ExitCode;

use anyhow::Result;
use guest_init::Status;
use xshell::Shell;

use crate::machine::{Machine, Runner};
use crate::matrix_table::NATIVE_ONLY;
use crate::programs::tests;
use crate::runner::{Run, end_groups_at_signals};
use crate::setup::Setup;
use crate::{become_command, step};

/// With one of these options, cargo runs no test program or must run them itself.
const NEEDS_CARGO: &[&str] = &["--no-run", "--doc", "--help", "-h", "--message-format"];

pub(crate) fn run(machine: &Machine, cargo: &[String]) -> Result<ExitCode> {
    let setup = Setup::new(machine)?;
    let sh = Shell::new()?;
    let (Some((options, arguments)), true) = (test_arguments(cargo), machine.runner != Runner::Native) else {
        return become_command(setup.cargo(&sh).args(cargo));
    };
    let programs = tests(machine, &setup, options, arguments)?;
    step(&format!("not run, because they need this machine: {}", NATIVE_ONLY.join(", ")));
    end_groups_at_signals()?;
    let mut failed = false;
    for programs in programs.chunk_by(|one, other| one.folder == other.folder) {
        let plan = setup.plan_for(programs);
        Run::new(&plan, programs)?.run(|program, Status { code, millis }| {
            step(&format!("{}: status {code}, {millis} ms", program.name()));
            failed |= code != 0;
        })?;
    }
    Ok(ExitCode::from(u8::from(failed)))
}

/// The options of `cargo test` and the arguments of its programs, if running these is all it does.
/// Then the programs of a package can share one boot.
fn test_arguments(cargo: &[String]) -> Option<(&[String], &[String])> {
    let (command, rest) = cargo.split_first()?;
    let end = rest.iter().position(|word| word == "--").unwrap_or(rest.len());
    let (options, arguments) = rest.split_at(end);
    let needs_cargo = |word: &String| NEEDS_CARGO.contains(&word.split('=').next().unwrap_or_default());
    let is_test = ["test", "t"].contains(&command.as_str()) && !options.iter().any(needs_cargo);
    is_test.then_some((options, arguments.get(1..).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::test_arguments;

    #[test]
    fn only_a_plain_test_shares_a_boot() {
        let arguments = |text: &str| {
            let words: Vec<String> = text.split_whitespace().map(String::from).collect();
            test_arguments(&words).map(|(options, rest)| (options.join(" "), rest.join(" ")))
        };
        let found = |options: &str, rest: &str| Some((options.to_owned(), rest.to_owned()));
        assert_eq!(arguments("test"), found("", ""));
        assert_eq!(arguments("t --tests -- --doc -- x"), found("--tests", "--doc -- x"));
        for text in ["bench", "run test", "test --doc", "test --no-run -- x", "test --message-format=json"] {
            assert_eq!(arguments(text), None, "{text}");
        }
    }
}
