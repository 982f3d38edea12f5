//! The programs that cargo builds for a place, and how several are run there, one after the other.

use std::path::Path;
use std::process::Command;

use crate::combinations::{NATIVE_ALONE, SKIPPED};
use crate::place::{Place, Runner};
use crate::process::stdout_with_messages;
use crate::setup::Setup;
use crate::workspace;

/// Test programs that change the kernel's clock source: in a guest they come after the others.
const SWITCHES: &[&str] = &["clock_states", "counter_switch"];

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Program {
    path: String,
    /// The folder of its package.
    pub(crate) package: String,
    arguments: Vec<String>,
}

impl Program {
    pub(crate) fn new(path: &str, package: &str) -> Self {
        Self { path: path.into(), package: package.into(), arguments: Vec::new() }
    }

    /// Its name, without what cargo adds.
    pub(crate) fn name(&self) -> &str {
        let file = Path::new(&self.path).file_name().and_then(|name| name.to_str()).unwrap_or_default();
        file.rsplit_once('-').map_or(file, |(name, _)| name)
    }

    pub(crate) fn with_argument(mut self, argument: &str) -> Self {
        self.arguments.push(argument.into());
        self
    }
}

/// The test programs that `cargo test` with these options has for the place, in cargo's order. Those
/// of `NATIVE_ALONE` are not among them.
pub(crate) fn tests(
    place: &Place,
    setup: &Setup,
    options: &[String],
    arguments: &[String],
) -> Result<Vec<Program>, String> {
    let at = place.to_string();
    let is_kernel = matches!(place.runner, Runner::Kernel(_));
    let mut cargo = setup.cargo();
    cargo.args(["test", "--no-run"]).args(options);
    let mut programs = built(&mut cargo, "\"test\":true")?;
    programs.sort_by_cached_key(|program| {
        let is_late = is_kernel && SWITCHES.contains(&program.name());
        (program.package.clone(), is_late, program.name().to_owned())
    });
    let is_native = place.runner == Runner::Native;
    programs.retain(|program| is_native || !NATIVE_ALONE.contains(&program.name()));
    let skipped = SKIPPED.iter().filter(|(prefix, ..)| at.starts_with(prefix));
    let skips: Vec<&str> = skipped.flat_map(|(_, test, _)| ["--skip", test]).collect();
    for program in &mut programs {
        program.arguments = arguments.iter().cloned().chain(skips.iter().map(ToString::to_string)).collect();
    }
    Ok(programs)
}

/// The programs that cargo builds, from its messages of which the line has the mark.
pub(crate) fn built(cargo: &mut Command, mark: &str) -> Result<Vec<Program>, String> {
    let messages = stdout_with_messages(cargo.arg("--message-format=json-render-diagnostics"))?;
    Ok(messages.lines().filter(|line| line.contains(mark)).filter_map(program).collect())
}

fn program(message: &str) -> Option<Program> {
    let text = |name: &str| Some(message.split_once(name)?.1.split_once('"')?.0);
    let package = Path::new(text("\"manifest_path\":\"")?).parent()?.to_str()?;
    Some(Program::new(text("\"executable\":\"")?, package))
}

/// The place runner with all of them, which are of one package.
pub(crate) fn each(setup: &Setup, programs: &[Program]) -> Command {
    let mut command = setup.runner();
    let package = programs.first().map_or_else(workspace::root, |program| (&program.package).into());
    command.current_dir(&package).env("CARGO_MANIFEST_DIR", &package);
    let mut mark = "--each";
    for program in programs {
        command.arg(mark).arg(&program.path).args(&program.arguments);
        mark = "--and";
    }
    command
}

/// How a program ended, and what it printed to standard output before.
#[derive(Debug, PartialEq)]
pub(crate) struct Ended<'a> {
    pub(crate) status: &'a str,
    pub(crate) out: &'a str,
}

/// What the place runner printed, taken apart at the lines that it adds; one for each program that
/// came to its end.
pub(crate) fn ended(stdout: &str) -> Vec<Ended<'_>> {
    let mut all = Vec::new();
    let (mut start, mut at) = (0, 0);
    for line in stdout.split_inclusive('\n') {
        let status = line.strip_prefix("place-runner: ").and_then(|line| line.rsplit_once(": status "));
        if let Some((status, _)) = status.and_then(|(_, rest)| rest.split_once(", ")) {
            // A line feed before the line is the runner's too.
            let out = &stdout[start..at];
            all.push(Ended { status, out: out.strip_suffix('\n').unwrap_or(out) });
            start = at + line.len();
        }
        at += line.len();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::{Ended, Program, ended, program};

    #[test]
    fn a_message_of_cargo_names_the_program_and_its_package() {
        let message = r#"{"reason":"compiler-artifact","manifest_path":"/a b/Cargo.toml","target":{"name":"x"},"profile":{"test":true},"executable":"/t/live-8f01","fresh":true}"#;
        let found = program(message).unwrap();
        assert_eq!(found, Program::new("/t/live-8f01", "/a b"));
        assert_eq!(found.name(), "live");
        assert_eq!(program(r#"{"manifest_path":"/a/Cargo.toml","executable":null}"#), None);
    }

    #[test]
    fn output_is_taken_apart_at_the_ends_of_programs() {
        let stdout =
            "one\n\nplace-runner: /d/a-1: status 0, 5 ms\ncut\nplace-runner: /d/b-2: status 101, 7 ms\nx";
        let expected = [Ended { status: "0", out: "one\n" }, Ended { status: "101", out: "cut" }];
        assert_eq!(ended(stdout), expected);
        assert_eq!(ended("x\n"), []);
    }
}
