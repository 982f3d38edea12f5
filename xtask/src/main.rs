//! `cargo xtask`: the maintenance tasks of this repository.

mod api;
mod cache;
mod check;
mod clients;
mod debian;
mod licences;
mod machine;
mod matrix;
mod matrix_page;
mod matrix_table;
mod programs;
mod runner;
mod setup;
mod targets;
mod toolchain;
mod tools;
mod workspace;

use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};
use xshell::{Cmd, Shell};

use machine::Machine;

#[derive(Parser)]
#[command(bin_name = "cargo xtask", about = "Runs the maintenance tasks of this repository.", after_help = help())]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run cargo with Debian's compiler of the oldest supported version: `cargo xtask msrv test`
    Msrv {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        cargo_arguments: Vec<String>,
    },
    /// Run cargo for another architecture or kernel: `cargo xtask on aarch64@6.12 test`
    #[command(after_help = machine::syntax())]
    On {
        machine: Machine,
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        cargo_arguments: Vec<String>,
    },
    /// Run the doctor and all tests on every machine of the matrix, or on these, and write the vDSO
    /// images of their kernels to target/vdso-images
    #[command(after_help = machine::syntax())]
    Matrix {
        /// Run only the machines that CI runs
        #[arg(long, conflicts_with = "write")]
        quick: bool,
        /// Update the rows in docs/MATRIX.md
        #[arg(long)]
        write: bool,
        machines: Vec<Machine>,
    },
    /// Type-check and lint the library for other targets
    Check {
        /// Only targets whose names contain one of these
        names: Vec<String>,
    },
    /// Compare the public API with docs/public-api.txt and with the header for C
    Api {
        /// Update both
        #[arg(long)]
        write: bool,
    },
    /// Compare the tests of quanta's dependants with quanta and with vdso-time-quanta
    Clients {
        /// Run only the packages that CI runs
        #[arg(long, conflicts_with = "write")]
        quick: bool,
        /// Update the table in docs/CLIENTS.md
        #[arg(long)]
        write: bool,
    },
    /// Check that every package is from crates.io, under a licence that deny.toml allows
    Licences,
    /// Run a program on a machine; cargo starts this
    #[command(hide = true)]
    Runner {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        words: Vec<String>,
    },
}

fn help() -> String {
    machine::syntax()
        + "\n\nEnvironment:
  VDSO_TIME_GUEST_TIMEOUT  the seconds that a program may run in QEMU, instead of 120
  VDSO_TIME_DEBIAN_MIRROR  the URI of a Debian mirror, instead of that in apt's sources
  XDG_CACHE_HOME           the folder of the cache `vdso-time`, instead of ~/.cache"
}

/// Prints what is being done.
fn step(message: &str) {
    eprintln!("xtask: {message}");
}

/// Replaces this process, so that a signal to it ends the command.
fn become_command(command: Cmd<'_>) -> Result<ExitCode> {
    let name = command.to_string();
    Err(Command::from(command).exec()).with_context(|| format!("cannot start {name}"))
}

fn run(task: Task) -> Result<ExitCode> {
    match task {
        Task::Msrv { cargo_arguments } => {
            let compiler = toolchain::Compiler::oldest()?;
            become_command(compiler.cargo(&Shell::new()?, "msrv").args(cargo_arguments))
        }
        Task::On { machine, cargo_arguments } => {
            become_command(setup::Setup::new(&machine)?.cargo(&Shell::new()?).args(cargo_arguments))
        }
        Task::Matrix { quick, write, machines } => matrix::run(quick, write, machines),
        Task::Check { names } => check::run(&names),
        Task::Api { write } => api::run(write),
        Task::Clients { quick, write } => clients::run(quick, write),
        Task::Licences => licences::run(),
        Task::Runner { words } => Ok(runner::run_for_cargo(&words)),
    }
}

fn main() -> ExitCode {
    run(Arguments::parse().task).unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::FAILURE
    })
}
