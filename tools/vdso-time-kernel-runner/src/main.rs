//! `vdso-time-kernel-runner`: see the README.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use vdso_time_kernel_runner::machine::{self, Machine};
use vdso_time_kernel_runner::setup::Setup;
use vdso_time_kernel_runner::{ENVIRONMENT, become_command, runner};
use xshell::Shell;

#[derive(Parser)]
#[command(version, about, after_help = machine::syntax() + "\n\n" + ENVIRONMENT)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run cargo for a machine: `on aarch64@6.12 test`
    On {
        machine: Machine,
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        cargo_arguments: Vec<String>,
    },
    /// Run a program on a machine, for cargo's setting `runner`: `run aarch64@6.12 PROGRAM`
    Run {
        machine: Machine,
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        words: Vec<String>,
    },
    /// Run a program on the machine of `on`; cargo starts this
    #[command(hide = true)]
    Runner {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        words: Vec<String>,
    },
}

fn run(task: Task) -> anyhow::Result<ExitCode> {
    match task {
        Task::On {
            machine,
            cargo_arguments,
        } => {
            let setup = Setup::new(&machine, "", Vec::new())?;
            become_command(setup.cargo_for(&Shell::new()?, &cargo_arguments))
        }
        Task::Run { machine, words } => {
            let plan = Setup::new(&machine, "", Vec::new())?.plan;
            Ok(runner::run_for_cargo(&words, Some(plan)))
        }
        Task::Runner { words } => Ok(runner::run_for_cargo(&words, None)),
    }
}

fn main() -> ExitCode {
    vdso_time_kernel_runner::run(|| run(Arguments::parse().task))
}
