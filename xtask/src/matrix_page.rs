//! The table of the matrix, which `docs/MATRIX.md` contains.

use comfy_table::Table;
use comfy_table::presets::ASCII_MARKDOWN;

use crate::matrix::Row;
use crate::matrix_table::names;
use crate::report::{FUNCTIONS, doctor_cells};

/// The table with these rows. Rows of other machines are taken from the old page.
pub(crate) fn table(rows: &[Row], old: &str) -> String {
    let head = ["machine", "kernel", "hash"].into_iter().chain(FUNCTIONS);
    let head: Vec<&str> =
        head.chain(["clock", "doctor", "ns time", "ns clock_gettime", "tests", "s"]).collect();
    let mut lines: Vec<Vec<String>> = rows.iter().map(cells).collect();
    for line in old.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")) {
        let cells: Vec<String> = line.split(" | ").map(|cell| cell.trim().to_owned()).collect();
        let is_machine = names().any(|name| name == cells[0]);
        if is_machine && cells.len() == head.len() && lines.iter().all(|line| line[0] != cells[0]) {
            lines.push(cells);
        }
    }
    lines.sort_by_key(|line| names().position(|name| name == line[0]));
    let mut table = Table::new();
    table.load_preset(ASCII_MARKDOWN).set_header(head).add_rows(lines);
    table.to_string()
}

fn cells(row: &Row) -> Vec<String> {
    let mut cells = vec![row.machine.clone()];
    cells.extend(doctor_cells(&row.doctor));
    cells.push(format!("{} / {} / {}", row.tests.passed, row.failed(), row.tests.not_run));
    cells.push(row.seconds.to_string());
    cells
}

/// The page with another table. The text around it stays.
pub(crate) fn page(old: &str, table: &str) -> String {
    let (head, rest) = old.split_once("\n| ").unwrap_or((old, ""));
    let after = rest.split_once("|\n\n").map_or("", |(_, after)| after);
    format!("{head}\n{table}\n\n{after}")
}

#[cfg(test)]
mod tests {
    use super::{Row, page, table};

    #[test]
    fn rows_of_other_machines_stay() {
        let row = |machine: &str, seconds| Row { machine: machine.into(), seconds, ..Row::default() };
        let old = table(&[row("i686@native", 1), row("armv7@7", 2)], "");
        let old = page("# Page\n\n| x |\n| y |\n\nThe end.\n", &old);
        assert!(old.starts_with("# Page\n\n| machine ") && old.ends_with(" 2 |\n\nThe end.\n"), "{old}");
        let new = table(&[row("aarch64@7", 3), row("armv7@7", 4)], &old);
        let ends: Vec<(&str, &str)> = new
            .lines()
            .skip(2)
            .filter_map(|line| line.trim_matches(['|', ' ']).split_once(' ').zip(line.rsplit('|').nth(1)))
            .map(|((machine, _), seconds)| (machine, seconds.trim()))
            .collect();
        assert_eq!(ends, [("i686@native", "1"), ("aarch64@7", "3"), ("armv7@7", "4")]);
    }
}
