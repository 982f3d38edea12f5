//! `cargo xtask paths`: the vDSO's time as a multiple of the system call's, here and on machines
//! that QEMU emulates.

use std::process::{Command, ExitCode};

use anyhow::Result;
use vdso_time_benches::pages::Table;

use crate::matrix::{self, quoted};
use crate::runner;
use crate::workspace::{self, step};

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

pub(crate) fn run(write: bool, named: Vec<String>) -> Result<ExitCode> {
    let is_here = named.is_empty();
    let machines = if is_here {
        MACHINES.map(str::to_owned).to_vec()
    } else {
        named
    };
    // The downloads, which a mirror may lack, come before the benches, which take minutes.
    for machine in &machines {
        let mut cargo = runner::on(machine)?;
        runner::run(cargo.args(["bench", "--no-run", "--quiet", "--bench", "paths"]))?;
    }
    let mut lines = Vec::new();
    if is_here {
        let sh = workspace::shell()?;
        lines.push(line(HERE, workspace::cargo(&sh).into())?);
    }
    for machine in &machines {
        lines.push(line(&quoted(machine), runner::on(machine)?)?);
    }
    let mut order = vec![HERE.to_owned()];
    order.extend(matrix::names().map(quoted));
    // One call of each function, and the other clocks of clock_gettime. One table is too wide.
    let all = lines[0].ratios.len();
    let split = all.div_ceil(2);
    for (name, columns) in [("paths", 0..split), ("paths-clocks", split..all)] {
        let mut head = vec!["vDSO / system call"];
        for (group, _) in &lines[0].ratios[columns.clone()] {
            head.push(group);
        }
        let mut table = Table::new(name, head);
        for line in &lines {
            let ratios = &line.ratios[columns.clone()];
            table.add(
                &line.machine,
                ratios.iter().map(|(_, ratio)| Some(ratio.clone())),
            );
        }
        table.show(write, &order)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The output of the bench on a machine.
struct Line {
    machine: String,
    /// The groups of the bench, with their ratios.
    ratios: Vec<(String, String)>,
}

/// Runs the bench.
///
/// The two measurements of `--quick` are not enough on a busy machine. In an emulator the bench is
/// short without it.
fn line(machine: &str, mut cargo: Command) -> Result<Line> {
    step(&format!("measuring: {machine}"));
    cargo
        .args(["bench", "--bench", "paths", "--", "--noplot"])
        .env("VDSO_TIME_GUEST_TIMEOUT", "600");
    let output = runner::read(&mut cargo)?;
    for line in output.lines() {
        if line.starts_with("busy: ") {
            step(line);
        }
    }
    let mut ratios = Vec::new();
    for row in Table::parse("", &output).rows {
        // The two first columns: the group, and its ratio.
        if let [group, ratio, ..] = row.as_slice() {
            let group = group.trim_start_matches("clock_gettime/");
            ratios.push((group.to_owned(), ratio.clone()));
        }
    }
    Ok(Line {
        machine: machine.to_owned(),
        ratios,
    })
}
