//! The tables of `tools/vdso-time-kernel-runner/MATRIX.md`.

use anyhow::Result;
use serde_json::Value;
use vdso_time_benches::pages::Table;

use super::names;
use super::row::Row;

/// The functions whose routes the doctor reports.
const FUNCTIONS: [&str; 5] = [
    "time",
    "gettimeofday",
    "clock_gettime",
    "clock_getres",
    "getcpu",
];

/// Prints the results of the machines, and which function answered each call there. With `--write`,
/// it also updates both tables in the page, which keeps the rows of other machines.
pub(super) fn show(rows: &[Row], write: bool) -> Result<()> {
    let mut results = Table::new("matrix", ["machine", "kernel", "clock", "doctor", "tests"]);
    let mut routes = Table::new("routes", ["machine"].into_iter().chain(FUNCTIONS));
    for row in rows {
        results.add(&quoted(&row.machine), result(row).map(Some));
        let route = |function| Some(route(&row.doctor["routes"][function]));
        routes.add(&quoted(&row.machine), FUNCTIONS.map(route));
    }
    let names: Vec<String> = names().map(quoted).collect();
    results.show(write, &names)?;
    Ok(routes.show(write, &names)?)
}

/// Puts the name in backticks, because otherwise a page shows `aarch64@5.10` as an e-mail address.
pub(crate) fn quoted(name: &str) -> String {
    format!("`{name}`")
}

/// Returns the kernel, the clock source, the doctor's finding, and the counts of tests.
fn result(row: &Row) -> [String; 4] {
    let doctor = &row.doctor;
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    [
        text(&doctor["kernel"]),
        text(&doctor["clock_source"]["current"]),
        text(&doctor["cause"]),
        format!("{}/{}/{}", row.passed, row.failed(), row.not_run),
    ]
}

/// Returns the symbol without its prefixes, with which the table would be wider than a page, or the
/// number of the system call.
fn route(route: &Value) -> String {
    match (
        route["via"].as_str(),
        route["symbol"].as_str(),
        &route["number"],
    ) {
        (Some("vdso"), Some(symbol), _) => {
            let short = ["__vdso_", "__kernel_"]
                .iter()
                .find_map(|prefix| symbol.strip_prefix(prefix));
            short.unwrap_or(symbol).trim_start_matches("clock_").into()
        }
        (Some("syscall"), _, number) => format!("call {number}"),
        _ => "-".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::{FUNCTIONS, Row, result, route};

    #[test]
    fn a_row_has_the_routes_and_the_finding_of_the_doctor() {
        let doctor = r#"{"kernel": "6.1.0", 
            "routes": {"time": {"via": "vdso", "symbol": "__vdso_clock_gettime64"},
                "gettimeofday": {"via": "syscall", "number": 403, "reason": "x"}},
            "clock_source": {"current": "tsc"}, "cause": "fine"}"#;
        let row = Row {
            doctor: serde_json::from_str(doctor).unwrap(),
            passed: 9,
            ..Row::default()
        };
        assert_eq!(result(&row), ["6.1.0", "tsc", "fine", "9/0/0"]);
        let routes = FUNCTIONS.map(|function| route(&row.doctor["routes"][function]));
        assert_eq!(routes, ["gettime64", "call 403", "-", "-", "-"]);
    }
}
