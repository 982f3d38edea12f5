//! `cargo xtask on`: cargo, with a target's compiler, linker and runner, which are fetched where they
//! are missing.

use std::process::ExitCode;

use crate::Error;
use crate::combinations::NATIVE_ALONE;
use crate::place::{Place, Runner};
use crate::process::{become_command, pass_through, step};
use crate::programs::{each, tests};
use crate::setup::Setup;

/// With one of these, cargo runs no test program, or needs to run them itself.
const CARGOS_OWN: &[&str] = &["--no-run", "--doc", "--help", "-h", "--message-format"];

pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, Error> {
    let [place, cargo @ ..] = arguments else {
        return Err(Error::Usage("`on` needs a place, and arguments for cargo".into()));
    };
    let place = Place::parse(place).map_err(Error::Usage)?;
    if cargo.is_empty() {
        return Err(Error::Usage(format!("`on {place}` needs arguments for cargo, such as `test`")));
    }
    let setup = Setup::of(&place)?;
    match test_arguments(cargo) {
        Some((options, arguments)) if place.runner != Runner::Native => {
            run_tests(&place, &setup, options, arguments)
        }
        _ => Err(become_command(setup.cargo().args(cargo)).into()),
    }
}

/// The arguments of `cargo test`, and those of its test programs, if running these is all it does.
fn test_arguments(cargo: &[String]) -> Option<(&[String], &[String])> {
    let (command, rest) = cargo.split_first()?;
    let end = rest.iter().position(|word| word == "--");
    let (options, arguments) = rest.split_at(end.unwrap_or(rest.len()));
    let is_own = |word: &String| CARGOS_OWN.contains(&word.split('=').next().unwrap_or_default());
    let is_test = ["test", "t"].contains(&command.as_str()) && !options.iter().any(is_own);
    is_test.then_some((options, arguments.get(1..).unwrap_or_default()))
}

/// Runs all test programs of a package at once: a kernel is booted once and not for each.
fn run_tests(
    place: &Place,
    setup: &Setup,
    options: &[String],
    arguments: &[String],
) -> Result<ExitCode, Error> {
    let programs = tests(place, setup, options, arguments)?;
    step(&format!("run natively alone: {}", NATIVE_ALONE.join(", ")));
    let mut code = ExitCode::SUCCESS;
    for of_package in programs.chunk_by(|one, other| one.package == other.package) {
        let ended = pass_through(&mut each(setup, of_package))?;
        if ended != ExitCode::SUCCESS {
            code = ended;
        }
    }
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::test_arguments;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(String::from).collect()
    }

    #[test]
    fn only_a_plain_test_is_run_at_once() {
        let arguments = |text| {
            let words = words(text);
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
