//! `cargo xtask`: the maintenance tasks of this repository.

#![forbid(unsafe_code)]

mod api;
mod check;
mod clients;
mod dist;
mod licences;
mod matrix;
mod package;
mod paths;
mod programs;
mod runner;
mod rust;
mod tools;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use xshell::Shell;

use crate::runner::{NOT_FETCHED, NotFetched};
use crate::rust::Rust;

/// The end of the help.
const MACHINES: &str = "`cargo run -p vdso-time-kernel-runner -- --help` lists the machines.";

#[derive(Parser)]
#[command(bin_name = "cargo xtask", about = "Runs the maintenance tasks of this repository.", after_help = MACHINES)]
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
    On {
        machine: String,
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        cargo_arguments: Vec<String>,
    },
    /// Run the doctor and the tests of the core, the counter and the tools on every machine of the
    /// matrix, or on these. If no kernel of an architecture can be fetched, its tests run in QEMU's
    /// user mode
    Matrix {
        /// Update the rows in tools/vdso-time-kernel-runner/MATRIX.md
        #[arg(long)]
        write: bool,
        machines: Vec<String>,
    },
    /// Type-check and lint the library for other targets
    Check {
        /// Only targets whose names contain one of these
        names: Vec<String>,
    },
    /// Compare the public APIs with xtask/api and with the headers for C
    Api {
        /// Update them
        #[arg(long)]
        write: bool,
    },
    /// Run the tests of quanta and of its dependants with vdso-time-quanta
    Clients {
        /// Only the packages of these names
        names: Vec<String>,
    },
    /// Compare the vDSO with the system call, here and on the machines of docs/BENCHMARKS.md, or on
    /// these
    Paths {
        /// Update the rows in docs/BENCHMARKS.md
        #[arg(long)]
        write: bool,
        machines: Vec<String>,
    },
    /// Check that every package is from crates.io, under a licence that deny.toml allows
    Licences {
        /// Also ask RustSec, at github.com, for known vulnerabilities
        #[arg(long)]
        advisories: bool,
    },
    /// Build the static programs for five architectures with their pages into target/dist
    Dist,
    /// Pack and compile all packages as for `cargo publish`, and again with the oldest Rust
    /// and the lowest dependencies that each allows; build their documentation as docs.rs does
    Package {
        /// Build the documentation for each of docs.rs's targets
        #[arg(long)]
        docs: bool,
    },
}

fn run(task: Task) -> Result<ExitCode> {
    match task {
        Task::Msrv { cargo_arguments } => {
            let sh = Shell::new()?;
            let cargo = Rust::oldest(&[])?.cargo(&sh, "msrv");
            runner::become_command(cargo.args(cargo_arguments).into())
        }
        Task::On {
            machine,
            cargo_arguments,
        } => {
            let mut cargo = runner::on(&machine)?;
            cargo.args(cargo_arguments);
            runner::become_command(cargo)
        }
        Task::Matrix { write, machines } => matrix::run(write, &machines),
        Task::Check { names } => check::run(&names),
        Task::Api { write } => api::run(write),
        Task::Clients { names } => clients::run(&names),
        Task::Paths { write, machines } => paths::run(write, machines),
        Task::Dist => dist::run(),
        Task::Package { docs } => package::run(docs),
        Task::Licences { advisories } => licences::run(advisories),
    }
}

fn main() -> ExitCode {
    let error = match run(Arguments::parse().task) {
        Ok(code) => return code,
        Err(error) => error,
    };
    if error.is::<NotFetched>() {
        let words: Vec<String> = std::env::args().skip(1).collect();
        workspace::step(&format!("{} did not run: {error:#}", words.join(" ")));
        return ExitCode::from(NOT_FETCHED);
    }
    workspace::step(&format!("{error:#}"));
    ExitCode::FAILURE
}
