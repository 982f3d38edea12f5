//! The results of a machine.

use serde_json::Value;

use crate::programs::{DOCTOR, Program};
use crate::runner;

pub(super) struct Row {
    pub(super) machine: String,
    pub(super) doctor: Value,
    pub(super) passed: usize,
    pub(super) failed_tests: usize,
    pub(super) not_run: usize,
    /// Programs that failed or did not run to their end.
    pub(super) errors: Vec<String>,
    /// Whether the machine's packages could be fetched.
    pub(super) is_fetched: bool,
}

impl Default for Row {
    fn default() -> Self {
        Self {
            machine: String::new(),
            doctor: Value::Null,
            passed: 0,
            failed_tests: 0,
            not_run: 0,
            errors: Vec::new(),
            is_fetched: true,
        }
    }
}

impl Row {
    /// Returns the name of the architecture.
    pub(super) fn arch(&self) -> &str {
        runner::arch(&self.machine)
    }

    /// Adds what the programs printed, one after the other. After each of them, the runner printed
    /// a line `[exit STATUS] PATH`.
    pub(super) fn add_all(&mut self, programs: &[Program], output: &str) {
        let mut text = String::new();
        for line in output.lines() {
            let ended = programs
                .iter()
                .find_map(|program| Some((program, status(line, &program.path)?)));
            if let Some((program, status)) = ended {
                self.add(&program.name, status, &text);
                text.clear();
            } else {
                text += line;
                text.push('\n');
            }
        }
    }

    /// Returns the number of failures. A program that fails without naming a test counts as one.
    pub(super) fn failed(&self) -> usize {
        self.failed_tests.max(self.errors.len())
    }

    /// Adds the results of a program.
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
        let last = out.trim_end().lines().next_back()?;
        let result = last.strip_prefix("test result: ")?;
        self.passed += count(result, "passed")?;
        self.failed_tests += count(result, "failed")?;
        let skips = out.lines().filter(|line| line.contains("not run here: "));
        self.not_run += skips.count();
        Some(())
    }
}

/// Returns the number before a word of `ok. 3 passed; 0 failed; ..`.
fn count(result: &str, word: &str) -> Option<usize> {
    for part in result.split([';', '.']) {
        if let Some(number) = part.trim().strip_suffix(word) {
            return number.trim().parse().ok();
        }
    }
    None
}

/// Returns the status in a line `[exit STATUS] PATH`, if it is this program's.
fn status(line: &str, path: &str) -> Option<u8> {
    let (status, ended) = line.strip_prefix("[exit ")?.split_once("] ")?;
    if ended == path {
        status.parse().ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{DOCTOR as DOCTOR_NAME, Program, Row};

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
    #[test]
    fn what_the_runner_prints_is_split_by_program() {
        let program = |name: &str| Program {
            name: name.to_owned(),
            path: format!("/target/{name}-1"),
            arguments: Vec::new(),
        };
        let output = format!(
            "{DOCTOR}\n[exit 0] /target/doctor-1\n{GOOD}\n[exit 0] /target/live-1\n{BAD}\n[exit 101] /target/bad-1\n"
        );
        let mut row = Row::default();
        row.add_all(
            &[program(DOCTOR_NAME), program("live"), program("bad")],
            &output,
        );
        assert_eq!(row.doctor["cause"], "fine");
        assert_eq!([row.passed, row.failed(), row.not_run], [5, 1, 1]);
        assert!(
            row.errors[0].starts_with("bad: status 101"),
            "{:?}",
            row.errors
        );
    }
}
