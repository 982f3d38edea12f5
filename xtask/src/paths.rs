//! `cargo xtask paths`: the vDSO's time as a multiple of the system call's, here and on machines
//! that QEMU emulates.

use std::process::ExitCode;

use anyhow::{Error, Result, ensure};
use vdso_time_kernel_runner::machine::Machine;
use vdso_time_kernel_runner::step;
use xshell::{Cmd, Shell};

use crate::{machines, matrix, page, workspace};

/// The row of the machine that runs this.
const HERE: &str = "this machine";

/// One in QEMU's user mode, the others in kernels.
const MACHINES: [&str; 5] = ["aarch64@qemu-10", "aarch64@7", "armv7@7", "i686@6.1", "x86_64@7"];

pub(crate) fn run(write: bool, named: Vec<Machine>) -> Result<ExitCode> {
    let sh = Shell::new()?;
    let mut lines = Vec::new();
    if named.is_empty() {
        lines.push(line(HERE, workspace::cargo(&sh))?);
    }
    let machines = if named.is_empty() {
        let machines = MACHINES.iter().map(|name| name.parse().map_err(Error::msg));
        machines.collect::<Result<Vec<Machine>>>()?
    } else {
        named
    };
    let mut status = ExitCode::SUCCESS;
    for machine in machines {
        let measured =
            machines::setup(&machine).and_then(|setup| line(&machine.to_string(), setup.cargo(&sh)));
        match measured {
            Ok(measured) => lines.push(measured),
            Err(error) => {
                step(&format!("{machine}: {error:#}"));
                status = ExitCode::FAILURE;
            }
        }
    }
    ensure!(!lines.is_empty(), "no machine was measured");
    let groups: Vec<&str> = lines[0].iter().map(|(group, _)| group.as_str()).collect();
    let rows: Vec<_> =
        lines.iter().map(|line| line.iter().map(|(_, ratio)| ratio.clone()).collect()).collect();
    let order: Vec<String> = [HERE].into_iter().chain(matrix::names()).map(String::from).collect();
    let table = |old: &str| page::table(&groups, page::with_old(rows, old, &order));
    page::update("docs/BENCHMARKS.md", "paths", write, table)?;
    Ok(status)
}

/// Runs the bench. Returns the groups and their ratios, after the name of the machine.
///
/// The two measurements of `--quick` are not enough on a busy machine. In an emulator the bench is
/// short without it.
fn line(machine: &str, cargo: Cmd<'_>) -> Result<Vec<(String, String)>> {
    step(&format!("measuring: {machine}"));
    let cargo = cargo.args(["bench", "--bench", "paths", "--", "--noplot"]);
    let output = cargo.env("VDSO_TIME_GUEST_TIMEOUT", "600").read()?;
    let mut line = vec![("vDSO / system call".to_owned(), machine.to_owned())];
    line.extend(output.lines().filter_map(ratio));
    Ok(line)
}

/// The group and the ratio in a line of the bench's table.
fn ratio(line: &str) -> Option<(String, String)> {
    let mut cells = line.strip_prefix("| ")?.split(" | ").map(str::trim);
    let (group, ratio) = (cells.next()?, cells.next()?);
    ratio.parse::<f64>().ok()?;
    Some((group.trim_start_matches("clock_gettime/").into(), ratio.into()))
}

#[cfg(test)]
mod tests {
    use super::ratio;

    #[test]
    fn the_group_and_its_ratio_are_read_and_the_head_is_not() {
        assert_eq!(ratio("| group | vdso / syscall | vdso / libc | answered in |"), None);
        assert_eq!(ratio("|-------|---------------:|------------:|------------:|"), None);
        let line = "| clock_gettime/TAI              |          0.096 |       0.704 |  user space |";
        assert_eq!(ratio(line), Some(("TAI".into(), "0.096".into())));
    }
}
