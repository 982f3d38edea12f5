//! The table of `docs/MATRIX.md`.

use comfy_table::Table;
use comfy_table::presets::ASCII_MARKDOWN;
use serde_json::Value;

use super::machines::names;
use super::row::Row;

/// The functions whose routes the doctor reports.
const FUNCTIONS: [&str; 5] = ["time", "gettimeofday", "clock_gettime", "clock_getres", "getcpu"];

/// The table with these rows. Rows of other machines are taken from the old page.
pub(super) fn table(rows: &[Row], old: &str) -> String {
    let head = ["machine", "kernel"].into_iter().chain(FUNCTIONS);
    let head: Vec<&str> = head.chain(["clock", "doctor", "tests"]).collect();
    let mut lines: Vec<Vec<String>> = rows.iter().map(cells).collect();
    for line in old.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")) {
        let cells: Vec<String> = line.split(" | ").map(|cell| cell.trim().to_owned()).collect();
        let is_machine = names().any(|name| quoted(name) == cells[0]);
        if is_machine && cells.len() == head.len() && lines.iter().all(|line| line[0] != cells[0]) {
            lines.push(cells);
        }
    }
    lines.sort_by_key(|line| names().position(|name| quoted(name) == line[0]));
    let mut table = Table::new();
    table.load_preset(ASCII_MARKDOWN).set_header(head).add_rows(lines);
    table.to_string()
}

/// The name in backticks, without which a page shows `aarch64@5.10` as an address of mail.
fn quoted(name: &str) -> String {
    format!("`{name}`")
}

/// The machine, its kernel, the routes, the clock source, the doctor's method and finding, and the
/// counts of tests.
fn cells(row: &Row) -> Vec<String> {
    let doctor = &row.doctor;
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let mut cells = vec![quoted(&row.machine), text(&doctor["kernel"])];
    cells.extend(FUNCTIONS.map(|function| route(&doctor["routes"][function])));
    cells.push(text(&doctor["clock_source"]["current"]));
    cells.push(format!("{}: {}", text(&doctor["method"]), text(&doctor["cause"])));
    cells.push(format!("{} / {} / {}", row.passed, row.failed(), row.not_run));
    cells
}

/// The symbol without the prefix of its architecture, or the number of the system call.
fn route(route: &Value) -> String {
    match (route["via"].as_str(), route["symbol"].as_str(), &route["number"]) {
        (Some("vdso"), Some(symbol), _) => {
            let short = ["__vdso_", "__kernel_"].iter().find_map(|prefix| symbol.strip_prefix(prefix));
            short.unwrap_or(symbol).into()
        }
        (Some("syscall"), _, number) => format!("call {number}"),
        _ => "-".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Row, cells, table};
    use crate::page::with_table;

    #[test]
    fn a_row_has_the_routes_and_the_finding_of_the_doctor() {
        let doctor = r#"{"kernel": "6.1.0", 
            "routes": {"time": {"via": "vdso", "symbol": "__vdso_clock_gettime64"},
                "gettimeofday": {"via": "syscall", "number": 403, "reason": "x"}},
            "clock_source": {"current": "tsc"}, "method": null, "cause": "fine"}"#;
        let machine = "armv7@7".to_owned();
        let row = Row { machine, doctor: serde_json::from_str(doctor).unwrap(), passed: 9, ..Row::default() };
        let expected = "`armv7@7`|6.1.0|clock_gettime64|call 403|-|-|-|tsc|-: fine|9 / 0 / 0";
        assert_eq!(cells(&row).join("|"), expected);
    }

    #[test]
    fn rows_of_other_machines_and_the_text_stay() {
        let row = |machine: &str, passed| Row { machine: machine.into(), passed, ..Row::default() };
        let old = table(&[row("i686@native", 1), row("armv7@7", 2)], "");
        let old = with_table("# Page\n\n| x |\n| y |\n\nThe end.\n", &old);
        let both = [row("i686@native", 1), row("aarch64@7", 3), row("armv7@7", 4)];
        assert_eq!(table(&both[1..], &old), table(&both, ""));
        assert!(old.starts_with("# Page\n\n| machine ") && old.ends_with(" 2 / 0 / 0 |\n\nThe end.\n"));
    }
}
