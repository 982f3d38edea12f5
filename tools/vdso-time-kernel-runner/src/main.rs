//! `vdso-time-kernel-runner`: see the README.

#![forbid(unsafe_code)]

use std::io;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use vdso_time_kernel_runner::machine::{self, Machine};
use vdso_time_kernel_runner::setup::Setup;
use vdso_time_kernel_runner::toolchain::Compiler;
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
    /// Run a program on a machine; `run aarch64@6.12` can be cargo's setting `runner`
    Run {
        machine: Machine,
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        words: Vec<String>,
    },
    /// Run programs one after the other, in one boot of a kernel
    ///
    /// Each line of standard input is a program with its arguments, as a JSON array of strings.
    /// After each program a line `[exit STATUS] PROGRAM` is printed.
    RunAll { machine: Machine },
    /// Fetch Debian's Rust 1.85, and print the variables with which cargo uses it
    ///
    /// Where Debian has no standard library for a target, it is compiled.
    Rust {
        /// Also print CHECK_SYSROOT, a sysroot with these crates of std, for `cargo check` only
        #[arg(long, value_name = "CRATES")]
        check: Option<String>,
        #[arg(value_name = "TARGET")]
        triples: Vec<String>,
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
            let setup = Setup::new(&machine)?;
            become_command(setup.cargo_for(&Shell::new()?, &cargo_arguments))
        }
        Task::Run { machine, words } => {
            let plan = Setup::new(&machine)?.plan;
            Ok(runner::run_for_cargo(&words, Some(plan)))
        }
        Task::RunAll { machine } => {
            let plan = Setup::new(&machine)?.plan;
            runner::run_all(&plan, io::stdin().lock())?;
            Ok(ExitCode::SUCCESS)
        }
        Task::Rust { check, triples } => {
            print_rust(check.as_deref(), &triples)?;
            Ok(ExitCode::SUCCESS)
        }
        Task::Runner { words } => Ok(runner::run_for_cargo(&words, None)),
    }
}

/// Prints the variables of Debian's Rust.
fn print_rust(check: Option<&str>, triples: &[String]) -> anyhow::Result<()> {
    let compiler = Compiler::oldest()?;
    match check {
        Some(crates) => {
            let sysroot = compiler.sysroot_to_check(triples, crates)?;
            // The variable is not called `SYSROOT`, because clippy-driver would read that, and use
            // this sysroot for build scripts as well.
            println!("CHECK_SYSROOT={}", sysroot.display());
        }
        None => {
            for triple in triples {
                compiler.add_std(triple)?;
            }
        }
    }
    for (name, value) in compiler.variables() {
        println!("{name}={}", value.display());
    }
    Ok(())
}

fn main() -> ExitCode {
    vdso_time_kernel_runner::run(|| run(Arguments::parse().task))
}
