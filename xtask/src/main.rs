//! `cargo xtask`: the chores of this repository, with nothing but the standard library.

mod api;
mod cache;
mod check;
mod combinations;
mod core_library;
mod coverage;
mod debian;
mod diff;
mod dump;
mod fuzz;
mod kernels;
mod licences;
mod matrix;
mod matrix_page;
mod on;
mod place;
mod places;
mod process;
mod programs;
mod report;
mod setup;
mod sources;
mod table;
mod targets;
mod toolchain;
mod tools;
mod workspace;

use std::fmt::Write as _;
use std::process::ExitCode;

/// Why a command did not succeed; the two kinds leave with different exit codes.
enum Error {
    /// The command line makes no sense: exit code 2, with a hint at the help.
    Usage(String),
    /// The work itself failed: exit code 1.
    Failed(String),
}

impl From<String> for Error {
    fn from(message: String) -> Self {
        Self::Failed(message)
    }
}

struct Command {
    name: &'static str,
    arguments: &'static str,
    about: &'static str,
    run: fn(&[String]) -> Result<ExitCode, Error>,
}

const COMMANDS: &[Command] = &[
    Command {
        name: "toolchain",
        arguments: "",
        about: "fetch the oldest supported compiler into the cache; print its folder",
        run: toolchain::print_folder,
    },
    Command {
        name: "msrv",
        arguments: "CARGO-ARGUMENTS...",
        about: "run cargo with that compiler: `cargo xtask msrv test`",
        run: toolchain::run_cargo,
    },
    Command {
        name: "on",
        arguments: "WHERE CARGO-ARGUMENTS...",
        about: "run cargo for another architecture or kernel: `cargo xtask on aarch64@6.12 test`",
        run: on::run,
    },
    Command {
        name: "matrix",
        arguments: "[--quick | --write] [WHERE...]",
        about: "run all tests and the doctor everywhere, or at each WHERE; --write those rows of docs/MATRIX.md",
        run: matrix::run,
    },
    Command {
        name: "dump",
        arguments: "[WHERE...]",
        about: "boot kernels, and write their vDSO images to target/vdso-images",
        run: dump::run,
    },
    Command {
        name: "check",
        arguments: "[NAME...]",
        about: "type-check and lint the library for foreign targets (those whose name contains a NAME)",
        run: check::run,
    },
    Command {
        name: "api",
        arguments: "[--write]",
        about: "compare the public API with public-api.txt, or write that file",
        run: api::run,
    },
    Command {
        name: "licences",
        arguments: "",
        about: "check that every package is of crates.io and under a licence that deny.toml allows",
        run: licences::run,
    },
    Command {
        name: "fuzz",
        arguments: "[--seconds N] [TARGET...]",
        about: "run the fuzz targets, 20 s each",
        run: fuzz::run,
    },
    Command {
        name: "coverage",
        arguments: "",
        about: "print which part of src/elf the fuzz targets and the properties reach; at least 95 %",
        run: coverage::run,
    },
    Command { name: "help", arguments: "", about: "print this", run: help },
];

const VARIABLES: &[(&str, &str)] = &[
    (toolchain::RUSTC_VARIABLE, "an installed rustc of the oldest supported version, instead of Debian's"),
    (setup::TIMEOUT_VARIABLE, "the seconds that a program may run in QEMU, instead of 120"),
    (sources::MIRROR_VARIABLE, "the URI of a Debian mirror, instead of that in apt's sources"),
    ("CARGO_TARGET_DIR", "where cargo builds, instead of target"),
    ("XDG_CACHE_HOME", "where the cache `vdso-time` lies, instead of ~/.cache"),
];

fn usage() -> String {
    let mut text = String::from("Usage: cargo xtask <command>\n\nCommands:\n");
    for command in COMMANDS {
        let call = format!("{} {}", command.name, command.arguments);
        let _ = writeln!(text, "  {call:<37} {}", command.about); // a String takes every write
    }
    text.push('\n');
    text.push_str(place::SYNTAX);
    text.push_str("\nEnvironment:\n");
    for (name, about) in VARIABLES {
        let _ = writeln!(text, "  {name:<24} {about}");
    }
    text
}

fn help(arguments: &[String]) -> Result<ExitCode, Error> {
    no_arguments(arguments)?;
    print!("{}", usage());
    Ok(ExitCode::SUCCESS)
}

fn no_arguments(arguments: &[String]) -> Result<(), Error> {
    match arguments.first() {
        None => Ok(()),
        Some(extra) => Err(unknown_argument(extra)),
    }
}

fn unknown_argument(argument: &str) -> Error {
    Error::Usage(format!("unknown argument `{argument}`"))
}

fn dispatch() -> Result<ExitCode, Error> {
    let mut arguments = Vec::new();
    for argument in std::env::args_os().skip(1) {
        let argument = argument.into_string().map_err(|raw| Error::Usage(format!("{raw:?} is not UTF-8")))?;
        arguments.push(argument);
    }
    let Some((name, rest)) = arguments.split_first() else {
        eprint!("{}", usage());
        return Ok(ExitCode::from(2));
    };
    let name = match name.as_str() {
        "-h" | "--help" => "help",
        name => name,
    };
    let command = COMMANDS
        .iter()
        .find(|command| command.name == name)
        .ok_or_else(|| Error::Usage(format!("unknown command `{name}`")))?;
    (command.run)(rest)
}

fn main() -> ExitCode {
    match dispatch() {
        Ok(code) => code,
        Err(Error::Usage(message)) => {
            eprintln!("xtask: {message}\n`cargo xtask help` lists the commands, and what WHERE can be.");
            ExitCode::from(2)
        }
        Err(Error::Failed(message)) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
