//! `cargo xtask paths`: the vDSO's time as a multiple of the system call's, here and on machines
//! that QEMU emulates.

use std::process::ExitCode;

use anyhow::{Context as _, Error, Result, ensure};
use comfy_table::Table;
use comfy_table::presets::ASCII_MARKDOWN;
use fs_err as fs;
use vdso_time_kernel_runner::machine::Machine;
use vdso_time_kernel_runner::step;
use xshell::{Cmd, Shell};

use crate::{machines, workspace};

const PAGE: &str = "docs/BENCHMARKS.md";
const BEGIN: &str = "<!-- bench paths -->\n";
const END: &str = "<!-- /bench -->";

/// The row of the machine that runs this.
const HERE: &str = "this machine";

/// One in QEMU's user mode, the others in kernels.
const MACHINES: [&str; 5] = ["aarch64@qemu-10", "aarch64@7", "armv7@7", "i686@6.1", "x86_64@7"];

pub(crate) fn run(write: bool, named: Vec<Machine>) -> Result<ExitCode> {
    let sh = Shell::new()?;
    let mut lines = Vec::new();
    if named.is_empty() {
        lines.push(line(HERE, workspace::cargo(&sh), &["--noplot"])?);
    }
    let machines = if named.is_empty() {
        let machines = MACHINES.iter().map(|name| name.parse().map_err(Error::msg));
        machines.collect::<Result<Vec<Machine>>>()?
    } else {
        named
    };
    let mut status = ExitCode::SUCCESS;
    for machine in machines {
        let measured = machines::setup(&machine)
            .and_then(|setup| line(&machine.to_string(), setup.cargo(&sh), &["--quick"]));
        match measured {
            Ok(measured) => lines.push(measured),
            Err(error) => {
                step(&format!("{machine}: {error:#}"));
                status = ExitCode::FAILURE;
            }
        }
    }
    ensure!(!lines.is_empty(), "no machine was measured");
    // Somebody may have edited the page meanwhile.
    let file = workspace::root().join(PAGE);
    let page = fs::read_to_string(&file)?;
    let (head, rest) = page.split_once(BEGIN).with_context(|| format!("{PAGE} has no {BEGIN}"))?;
    let (old, tail) = rest.split_once(END).with_context(|| format!("{PAGE} has no {END}"))?;
    let groups: Vec<String> = lines[0].iter().map(|(group, _)| group.clone()).collect();
    let rows = lines.iter().map(|line| line.iter().map(|(_, ratio)| ratio.clone()).collect());
    let table = table(&groups, rows.collect(), old);
    println!("{table}");
    if write {
        fs::write(&file, [head, BEGIN, &table, "\n", END, tail].concat())?;
    }
    Ok(status)
}

/// Runs the bench. Returns the groups and their ratios, after the name of the machine.
fn line(machine: &str, cargo: Cmd<'_>, options: &[&str]) -> Result<Vec<(String, String)>> {
    step(&format!("measuring: {machine}"));
    let cargo = cargo.args(["bench", "--bench", "paths", "--"]).args(options);
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

/// The table with these rows. Rows of other machines are taken from the old one.
fn table(head: &[String], mut rows: Vec<Vec<String>>, old: &str) -> String {
    for line in old.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")) {
        let cells: Vec<String> = line.split(" | ").map(|cell| cell.trim().to_owned()).collect();
        if cells[0] != head[0] && cells.len() == head.len() && rows.iter().all(|row| row[0] != cells[0]) {
            rows.push(cells);
        }
    }
    let place = |row: &Vec<String>| MACHINES.iter().position(|name| row[0] == *name);
    rows.sort_by_key(|row| (row[0] != HERE, place(row).unwrap_or(MACHINES.len())));
    let mut table = Table::new();
    table.load_preset(ASCII_MARKDOWN).set_header(head).add_rows(rows);
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::{HERE, ratio, table};

    #[test]
    fn the_group_and_its_ratio_are_read_and_the_head_is_not() {
        assert_eq!(ratio("| group | vdso / syscall | vdso / libc | answered in |"), None);
        assert_eq!(ratio("|-------|---------------:|------------:|------------:|"), None);
        let line = "| clock_gettime/TAI              |          0.096 |       0.704 |  user space |";
        assert_eq!(ratio(line), Some(("TAI".into(), "0.096".into())));
    }

    #[test]
    fn rows_of_other_machines_stay_in_order() {
        let row = |name: &str, ratio: &str| vec![name.to_owned(), ratio.to_owned()];
        let head = row("machine", "time");
        let old = table(&head, vec![row("armv7@7", "1"), row(HERE, "2")], "");
        let new = table(&head, vec![row("aarch64@7", "3"), row("armv7@7", "4")], &old);
        let names: Vec<&str> = new.lines().skip(2).filter_map(|line| line.split('|').nth(1)).collect();
        let names: Vec<&str> = names.into_iter().map(str::trim).collect();
        assert_eq!(names, [HERE, "aarch64@7", "armv7@7"]);
        assert!(new.contains('4') && !new.contains('1'), "{new}");
    }
}
