//! What came of a machine.

use serde_json::Value;

use crate::programs::DOCTOR;

#[derive(Default)]
pub(super) struct Row {
    pub(super) machine: String,
    pub(super) doctor: Value,
    pub(super) passed: usize,
    pub(super) failed_tests: usize,
    pub(super) not_run: usize,
    /// Programs that failed or did not run to their end.
    pub(super) errors: Vec<String>,
    /// Why the machine did not run: its packages could not be fetched.
    pub(super) not_fetched: Option<String>,
}

impl Row {
    /// Returns the name of the architecture.
    pub(super) fn arch(&self) -> &str {
        self.machine.split('@').next().unwrap_or_default()
    }

    /// Returns the number of failures. A program that fails without naming a test counts as one.
    pub(super) fn failed(&self) -> usize {
        self.failed_tests.max(self.errors.len())
    }

    /// Adds what came of a program.
    pub(super) fn add(&mut self, name: &str, code: u8, out: &str) {
        let is_whole = if name == DOCTOR {
            self.doctor = serde_json::from_str(out).unwrap_or_default();
            self.doctor["cause"].is_string()
        } else {
            self.add_tests(out).is_some()
        };
        if code != 0 {
            // A program that crashes lists no failures.
            let failures = out.find("\nfailures:\n").unwrap_or(0);
            self.errors
                .push(format!("{name}: status {code}\n{}", &out[failures..]));
        } else if !is_whole {
            self.errors
                .push(format!("{name}: its output is incomplete"));
        }
    }

    /// Adds the counts in the last line of a test program. `None` if there is no such line.
    fn add_tests(&mut self, out: &str) -> Option<()> {
        let result = out
            .trim_end()
            .lines()
            .next_back()?
            .strip_prefix("test result: ")?;
        let count = |word| {
            let mut parts = result.split([';', '.']).map(str::trim);
            parts
                .find_map(|part| part.strip_suffix(word))?
                .trim()
                .parse::<usize>()
                .ok()
        };
        self.passed += count("passed")?;
        self.failed_tests += count("failed")?;
        self.not_run += out
            .lines()
            .filter(|line| line.contains("not run here: "))
            .count();
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::Row;

    const DOCTOR: &str = r#"{"kernel": "6.1", "cause": "fine"}"#;
    const GOOD: &str = "running 3 tests\nnot run here: no valgrind\n\ntest result: ok. 3 passed; 0 failed; \
                        0 ignored; 0 measured; 0 filtered out; finished in 0.01s\n\n";
    const BAD: &str = "running 3 tests\ntest broken ... FAILED\n\nfailures:\n    broken\n\ntest result: FAILED. 2 passed; \
                       1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s\n\n";

    #[test]
    fn a_program_that_fails_or_prints_incomplete_output_is_an_error() {
        for (name, code, out, counts, errors) in [
            ("doctor", 0, DOCTOR, [0, 0, 0], ""),
            (
                "doctor",
                0,
                "{",
                [0, 1, 0],
                "doctor: its output is incomplete",
            ),
            ("live", 0, GOOD, [3, 0, 1], ""),
            (
                "live",
                101,
                BAD,
                [2, 1, 0],
                "live: status 101\n\nfailures:\n    broken",
            ),
            (
                "live",
                139,
                "running 3 tests\n",
                [0, 1, 0],
                "live: status 139\nrunning 3 tests",
            ),
            (
                "live",
                0,
                "running 3 tests\n",
                [0, 1, 0],
                "live: its output is incomplete",
            ),
        ] {
            let mut row = Row::default();
            row.add(name, code, out);
            assert_eq!([row.passed, row.failed(), row.not_run], counts);
            assert!(
                row.errors.join("; ").starts_with(errors),
                "{:?}",
                row.errors
            );
        }
    }
}
