//! `cargo xtask paths`: the vDSO's time as a multiple of the system call's, here and on machines
//! that QEMU emulates.

use std::process::ExitCode;

use anyhow::{Error, Result};
use vdso_time_benches::pages::Table;
use vdso_time_kernel_runner::machine::Machine;
use vdso_time_kernel_runner::step;
use xshell::{Cmd, Shell};

use crate::matrix::{self, quoted};
use crate::{machines, workspace};

/// The row of the machine that runs this.
const HERE: &str = "this machine";

/// One in QEMU's user mode, the others in kernels.
const MACHINES: [&str; 5] = [
    "aarch64@qemu-10",
    "aarch64@7",
    "armv7@7",
    "i686@6.1",
    "x86_64@7",
];

pub(crate) fn run(write: bool, named: Vec<Machine>) -> Result<ExitCode> {
    let (sh, is_here) = (Shell::new()?, named.is_empty());
    let usual = MACHINES
        .iter()
        .map(|name| name.parse::<Machine>().map_err(Error::msg));
    let machines = if is_here {
        usual.collect::<Result<_>>()?
    } else {
        named
    };
    // The downloads, which a mirror may lack, come before the benches, which take minutes.
    let setups = machines
        .iter()
        .map(machines::setup)
        .collect::<Result<Vec<_>>>()?;
    let mut lines = Vec::new();
    if is_here {
        lines.push(line(HERE, workspace::cargo(&sh))?);
    }
    for (machine, setup) in machines.iter().zip(&setups) {
        lines.push(line(&quoted(&machine.to_string()), setup.cargo(&sh))?);
    }
    let order: Vec<String> = [HERE.to_owned()]
        .into_iter()
        .chain(matrix::names().map(quoted))
        .collect();
    // One call of each function, and the other clocks of clock_gettime. One table is too wide.
    let split = lines[0].1.len().div_ceil(2);
    for (name, columns) in [
        ("paths", 0..split),
        ("paths-clocks", split..lines[0].1.len()),
    ] {
        let groups = lines[0].1[columns.clone()]
            .iter()
            .map(|(group, _)| group.as_str());
        let mut table = Table::new(name, ["vDSO / system call"].into_iter().chain(groups));
        for (machine, ratios) in &lines {
            table.add(
                machine,
                ratios[columns.clone()]
                    .iter()
                    .map(|(_, ratio)| Some(ratio.clone())),
            );
        }
        table.show(write, &order)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A machine, and the groups of the bench with their ratios.
type Line = (String, Vec<(String, String)>);

/// Runs the bench.
///
/// The two measurements of `--quick` are not enough on a busy machine. In an emulator the bench is
/// short without it.
fn line(machine: &str, cargo: Cmd<'_>) -> Result<Line> {
    step(&format!("measuring: {machine}"));
    let cargo = cargo.args(["bench", "--bench", "paths", "--", "--noplot"]);
    let output = cargo.env("VDSO_TIME_GUEST_TIMEOUT", "600").read()?;
    // The two first columns: the group, and its ratio.
    let ratio = |row: Vec<String>| {
        let [group, ratio, ..] = row.as_slice() else {
            return None;
        };
        Some((
            group.trim_start_matches("clock_gettime/").to_owned(),
            ratio.clone(),
        ))
    };
    for busy in output.lines().filter(|line| line.starts_with("busy: ")) {
        step(busy);
    }
    Ok((
        machine.to_owned(),
        Table::parse("", &output)
            .rows
            .into_iter()
            .filter_map(ratio)
            .collect(),
    ))
}
