//! Finds out which test is running, from the output of libtest, Rust's test harness.
//!
//! With one thread libtest prints `test NAME ... ` before a test and `ok` after it. With more
//! threads it prints the whole line after the test, so a running test is known only once libtest
//! names it as slow, after a minute.

use std::collections::BTreeSet;

/// The end of the first part of a test's line.
const DOTS: &str = " ... ";

/// The text that libtest prints about a test that has run for a minute.
const SLOW: &str = " has been running for over ";

const RESULTS: &[&str] = &["ok", "FAILED", "ignored", "bench:"];

/// Follows the standard output of a test program.
#[derive(Default)]
pub(super) struct Tests {
    /// The line that has not ended.
    line: Vec<u8>,
    /// The test whose line has no result yet.
    current: Option<String>,
    /// The tests that were named as slow and have no result yet.
    slow: BTreeSet<String>,
}

impl Tests {
    /// Reads the next bytes of the output.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend(part);
            if self.line.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                self.read(&String::from_utf8_lossy(&line));
            }
        }
    }

    fn read(&mut self, line: &str) {
        let line = line.trim_end();
        if let Some((name, result)) = test(line) {
            if is_result(result) {
                self.current = None;
                self.slow.remove(name);
            } else {
                // The rest of the line is not a result: the test itself printed it.
                self.current = Some(name.to_owned());
            }
        } else if is_result(line) {
            self.current = None;
        } else if let Some(rest) = line.strip_prefix("test ") {
            if let Some((name, _)) = rest.split_once(SLOW) {
                self.slow.insert(name.to_owned());
            }
        }
    }

    /// Returns the names of the running tests, as far as the output tells.
    pub(super) fn running(&self) -> Vec<String> {
        let mut names: Vec<String> = self.slow.iter().cloned().collect();
        let line = String::from_utf8_lossy(&self.line);
        let current = match test(&line) {
            Some((name, _)) => Some(name.to_owned()),
            None => self.current.clone(),
        };
        if let Some(name) = current {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}

/// Splits `test NAME ... RESULT` into the name and the result.
fn test(line: &str) -> Option<(&str, &str)> {
    let (name, result) = line.strip_prefix("test ")?.split_once(DOTS)?;
    let name = name.strip_suffix(" - should panic").unwrap_or(name);
    Some((name, result))
}

fn is_result(text: &str) -> bool {
    let word = text.split([' ', ',']).next().unwrap_or_default();
    RESULTS.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::Tests;

    #[test]
    fn the_tests_that_run_are_known_whatever_the_number_of_threads() {
        for (output, running) in [
            ("", &[][..]),
            ("\nrunning 2 tests\ntest a ... ok\ntest b ... ", &["b"]),
            ("test a ... ok\ntest b::c - should panic ... ", &["b::c"]),
            ("test a ... ok\ntest b ... FAILED\n", &[]),
            ("test a ... ignored, needs root\n", &[]),
            // With --nocapture the test prints on its own line.
            ("test a ... printed\nmore\n", &["a"]),
            ("test a ... printed\nok\n", &[]),
            ("test a ... printed\nok\ntest b ... okay", &["b"]),
            // With two threads.
            (
                "test a ... ok\ntest b has been running for over 60 seconds\n",
                &["b"],
            ),
            (
                "test a has been running for over 60 seconds\ntest c has been running for over 60 \
                 seconds\ntest a ... ok\n",
                &["c"],
            ),
        ] {
            for size in [1, 7, 1000] {
                let mut tests = Tests::default();
                for part in output.as_bytes().chunks(size) {
                    tests.push(part);
                }
                assert_eq!(tests.running(), running, "{output:?} in parts of {size}");
            }
        }
    }
}
