//! What the matrix says of its combinations: a line for each while it runs, the table, the page.

use std::fmt::Write as _;

use crate::combinations::{COMBINATIONS, NATIVE_ALONE, SKIPPED};
use crate::report::{COSTS, FUNCTIONS, Report, Tests};
use crate::table::markdown;

const HEAD: &str = "\
# Where the tests passed

Written by `cargo xtask matrix --write`. Each row is a run of `vdso-doctor` and of
all tests, on this machine, in QEMU's user mode, or in a kernel of Debian's that QEMU boots.

```sh
# Repeats a row.
cargo xtask matrix armv7@6.12
# Repeats it and renews it on this page; the other rows stay.
cargo xtask matrix --write armv7@6.12
# The same tests, as cargo shows them; and one test program.
cargo xtask on armv7@6.12 test --tests --package vdso-time --package vdso-doctor --features counter
cargo xtask on armv7@6.12 test --test calls
```

- **kernel**: what uname(2) says there. QEMU's user mode has the kernel of the machine it runs on.
- **hash**: the vDSO's tables of symbols; `-`: there is no vDSO.
- **time** to **getcpu**: who answers: the vDSO's function (without `__vdso_` or `__kernel_`), or the system call of that number.
- **clock**: the kernel's clock source. **doctor**: how it looked, and what it found for the usual clocks.
- **tests**: passed, failed, and how often a test said `not run here`, with the reason, for something that is missing there.
";

/// One combination, and what came of it.
#[derive(Default)]
pub(crate) struct Row {
    pub(crate) place: String,
    pub(crate) report: Report,
    /// Programs that did not leave with 0, guests that did not come to their end.
    pub(crate) errors: Vec<String>,
    pub(crate) seconds: u64,
}

impl Row {
    fn is_good(&self) -> bool {
        self.errors.is_empty() && self.report.tests.failed.is_empty()
    }

    /// Where a program ends without telling which test failed, it counts for one.
    fn failed(&self) -> usize {
        self.report.tests.failed.len().max(self.errors.len())
    }

    pub(crate) fn summary(&self) -> String {
        let (cause, Tests { passed, not_run, .. }) = (&self.report.cause, &self.report.tests);
        let word = if self.is_good() { "good" } else { "BAD" };
        let (failed, seconds) = (self.failed(), self.seconds);
        format!(
            "{:<26} {word:<4} {passed} passed, {failed} failed, {not_run} not run; {cause}; {seconds} s",
            self.place
        )
    }

    fn cells(&self) -> Vec<String> {
        let report = &self.report;
        let mut cells = vec![self.place.clone(), report.kernel.clone(), report.hash_tables.clone()];
        cells.extend(report.routes.iter().cloned());
        cells.push(report.clock_source.clone());
        cells.push(format!("{}: {}", report.method, report.cause));
        let failed = self.failed();
        cells.push(format!("{} / {failed} / {}", report.tests.passed, report.tests.not_run));
        cells.push(self.seconds.to_string());
        cells
    }
}

/// Where the tests passed; `old` has such a table, of which the rows of other places stay.
pub(crate) fn table(rows: &[Row], old: &str) -> String {
    let mut head = vec!["where", "kernel", "hash"];
    head.extend(FUNCTIONS);
    head.extend(["clock", "doctor", "tests", "s"]);
    merged(&head, rows.iter().map(Row::cells).collect(), old)
}

/// What reads cost there: through the crate, by system call, and the ratio.
pub(crate) fn costs(rows: &[Row], old: &str) -> String {
    let mut head = vec!["ns / ns of a system call"];
    head.extend(COSTS.iter().map(|cost| cost.title));
    let cells = |row: &Row| [vec![row.place.clone()], row.report.costs.to_vec()].concat();
    merged(&head, rows.iter().map(cells).collect(), old)
}

/// The places whose costs docs/BENCHMARKS.md has.
const PUBLISHED: &[&str] = &[
    "aarch64@5.10",
    "aarch64@7",
    "armv7@5.10",
    "armv7@7",
    "armv7@arm64-7",
    "x86_64@7",
    "i686@6.1",
    "i686@amd64-7",
];

/// The rows of [`costs`] that docs/BENCHMARKS.md has.
pub(crate) fn published_costs(rows: &[Row], old: &str) -> String {
    let costs = costs(rows, old);
    let is_kept = |(at, line): &(usize, &str)| {
        let place = line.split('|').nth(1).map(str::trim).unwrap_or_default();
        *at < 2 || PUBLISHED.contains(&place)
    };
    costs.lines().enumerate().filter(is_kept).map(|(_, line)| format!("{line}\n")).collect()
}

fn merged(head: &[&str], mut lines: Vec<Vec<String>>, old: &str) -> String {
    for line in old.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")) {
        let cells: Vec<String> = line.split(" | ").map(|cell| cell.trim().to_string()).collect();
        let is_place = COMBINATIONS.iter().any(|(name, _)| *name == cells[0]);
        if is_place && cells.len() == head.len() && lines.iter().all(|line| line[0] != cells[0]) {
            lines.push(cells);
        }
    }
    lines.sort_by_key(|line| COMBINATIONS.iter().position(|(name, _)| *name == line[0]));
    markdown(head, lines.into_iter())
}

/// The names of what failed, by place.
pub(crate) fn failures(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows.iter().filter(|row| !row.is_good()) {
        let _ = writeln!(text, "\nfailed on {}:", row.place); // a String takes every write
        for what in row.report.tests.failed.iter().chain(&row.errors) {
            let _ = writeln!(text, "- {what}");
        }
    }
    text
}

/// The whole of the document.
pub(crate) fn page(table: &str, failures: &str) -> String {
    format!("{HEAD}\n{table}\n{}{failures}", left_out())
}

fn left_out() -> String {
    let mut text = String::from("Not run:\n\n");
    for program in NATIVE_ALONE {
        let _ = writeln!(
            text,
            "- `tests/{program}` elsewhere than natively: it looks at what the compiler makes"
        );
    }
    for (place, test, why) in SKIPPED {
        let _ = writeln!(text, "- `{test}` at `{place}...`: {why}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{HEAD, Row, costs};
    use crate::combinations::TESTS;

    #[test]
    fn the_page_has_the_command_of_the_rows() {
        assert!(HEAD.contains(&format!("test {TESTS}\n")));
    }

    #[test]
    fn rows_of_other_places_stay() {
        let row = |place: &str, cost: &str| {
            let mut row = Row { place: place.into(), ..Row::default() };
            row.report.costs[0] = cost.into();
            row
        };
        let old = costs(&[row("i686@native", "1"), row("armv7@7", "2")], "");
        let new = costs(&[row("aarch64@7", "3"), row("armv7@7", "4")], &old);
        let firsts: Vec<&str> = new.lines().skip(2).filter_map(|line| line.split('|').nth(1)).collect();
        assert_eq!(
            firsts.iter().map(|first| first.trim()).collect::<Vec<_>>(),
            ["i686@native", "aarch64@7", "armv7@7"]
        );
        assert!(new.contains("| 4 ") && !new.contains("| 2 "), "{new}");
    }
}
