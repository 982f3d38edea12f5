//! The table of `docs/MATRIX.md`.

use serde_json::Value;

use super::machines::names;
use super::row::Row;
use crate::page;

/// The functions whose routes the doctor reports.
const FUNCTIONS: [&str; 5] = ["time", "gettimeofday", "clock_gettime", "clock_getres", "getcpu"];

/// The table with these rows. Rows of other machines are taken from the old page.
pub(super) fn table(rows: &[Row], old: &str) -> String {
    let head = ["machine", "kernel"].into_iter().chain(FUNCTIONS);
    let head: Vec<&str> = head.chain(["clock", "doctor", "tests"]).collect();
    let names: Vec<String> = names().map(quoted).collect();
    page::table(&head, page::with_old(rows.iter().map(cells).collect(), old, &names))
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
    use super::{Row, cells};

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
}
