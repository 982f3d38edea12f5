//! What came of one combination, read from what its programs printed.

use serde_json::Value;

/// The functions whose routes are reported, as the doctor names them.
pub(crate) const FUNCTIONS: [&str; 5] = ["time", "gettimeofday", "clock_gettime", "clock_getres", "getcpu"];

/// A read whose cost is reported.
pub(crate) struct Cost {
    pub(crate) title: &'static str,
    function: &'static str,
    clock: Option<&'static str>,
}

const fn cost(title: &'static str, function: &'static str, clock: Option<&'static str>) -> Cost {
    Cost { title, function, clock }
}

pub(crate) const COSTS: [Cost; 6] = [
    cost("time", "time", None),
    cost("gettimeofday", "gettimeofday", None),
    cost("clock_gettime MONOTONIC", "clock_gettime", Some("CLOCK_MONOTONIC")),
    cost("MONOTONIC_COARSE", "clock_gettime", Some("CLOCK_MONOTONIC_COARSE")),
    cost("clock_getres", "clock_getres", Some("CLOCK_MONOTONIC")),
    cost("getcpu", "getcpu", None),
];

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Report {
    pub(crate) kernel: String,
    pub(crate) hash_tables: String,
    pub(crate) routes: [String; 5],
    pub(crate) clock_source: String,
    pub(crate) method: String,
    pub(crate) cause: String,
    /// As `10 / 200 = 0.050`: through the crate, by system call, in nanoseconds, and the ratio.
    pub(crate) costs: [String; 6],
    pub(crate) tests: Tests,
}

/// What a test program found, or several.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Tests {
    pub(crate) passed: u32,
    pub(crate) failed: Vec<String>,
    pub(crate) not_run: usize,
}

impl Tests {
    /// Of the output of a program with `--show-output`; `None` if it is not the whole of it: the
    /// first line says how many tests there are, and the last counts the results. Between them may
    /// be what such programs print that a test starts.
    pub(crate) fn read(out: &str) -> Option<Self> {
        let expected = out.lines().find_map(|line| line.strip_prefix("running "))?;
        let expected: u32 = expected.split(' ').next()?.parse().ok()?;
        let result = out.trim_end().lines().next_back()?.strip_prefix("test result: ")?;
        let count = |word| {
            let before = result.split([';', '.']).map(str::trim).find_map(|part| part.strip_suffix(word));
            before?.trim().parse::<u32>().ok()
        };
        let [passed, failed, ignored, measured] =
            [count("passed")?, count("failed")?, count("ignored")?, count("measured")?];
        let list = out.rsplit_once("\nfailures:\n").map_or("", |(_, list)| list);
        let names = list.lines().map_while(|line| line.strip_prefix("    ")).map(String::from).collect();
        let tests = Self {
            passed,
            failed: if failed == 0 { Vec::new() } else { names },
            not_run: out.lines().filter(|line| line.starts_with("not run here")).count(),
        };
        let is_whole = passed + failed + ignored + measured == expected
            && tests.failed.len() == failed as usize
            && result.contains("finished in ")
            && result.ends_with('s');
        is_whole.then_some(tests)
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed.extend(other.failed);
        self.not_run += other.not_run;
    }
}

/// Whether this is all that `vdso-doctor --json` prints.
pub(crate) fn is_whole_doctor(out: &str) -> bool {
    serde_json::from_str::<Value>(out).is_ok_and(|json| json["format"] == 1)
}

impl Report {
    /// Of the output of `vdso-doctor --json`.
    pub(crate) fn read(doctor: &str, tests: Tests) -> Self {
        let json: Value = serde_json::from_str(doctor).unwrap_or_default();
        let tables = ["sysv_hash", "gnu_hash"].map(|name| json["vdso"][name].as_bool());
        let hash_tables = match tables {
            [Some(true), Some(true)] => "both",
            [Some(true), _] => "SysV",
            [_, Some(true)] => "GNU",
            [Some(_), Some(_)] => "none",
            _ => "-",
        };
        Self {
            kernel: text(&json["kernel"]),
            hash_tables: hash_tables.into(),
            routes: FUNCTIONS.map(|function| route(&json["routes"][function])),
            clock_source: text(&json["clock_source"]["current"]),
            method: text(&json["method"]),
            cause: text(&json["cause"]),
            costs: COSTS.map(|cost| cost.of(&json["reads"])),
            tests,
        }
    }
}

impl Cost {
    fn of(&self, reads: &Value) -> String {
        let is_it = |read: &&Value| read["function"] == self.function && read["clock"].as_str() == self.clock;
        let Some(read) = reads.as_array().and_then(|reads| reads.iter().find(is_it)) else {
            return "-".into();
        };
        match ["ns", "syscall_ns", "ratio"].map(|name| read[name].as_f64()) {
            [Some(here), Some(call), Some(ratio)] => format!("{here:.0} / {call:.0} = {ratio:.3}"),
            _ => "-".into(),
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or("-").into()
}

/// The symbol without the common prefix, or the number of the system call.
fn route(route: &Value) -> String {
    match route["via"].as_str() {
        Some("vdso") => {
            text(&route["symbol"]).trim_start_matches("__vdso_").trim_start_matches("__kernel_").into()
        }
        Some("syscall") => format!("call {}", route["number"]),
        _ => "-".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Report, Tests, is_whole_doctor};

    const RESULT: &str = "test result: FAILED. 11 passed; 1 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.01s\n";

    /// With the output of a test program that a test started.
    fn output() -> String {
        format!(
            "\nrunning 13 tests\ntest a ... ok\ntest b::c ... FAILED\n\nsuccesses:\n\n---- a stdout ----\n\
             not run here: no valgrind\n\nfailures:\n\n---- b::c stdout ----\nrunning 1 test\n\
             test b::c ... FAILED\n\nfailures:\n    b::c\n\ntest result: FAILED. 0 passed; 1 failed; \
             0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n\nfailures:\n    b::c\n\n{RESULT}\n"
        )
    }

    #[test]
    fn a_test_program_is_counted_once_whatever_its_tests_print() {
        let failed = vec!["b::c".into()];
        assert_eq!(Tests::read(&output()), Some(Tests { passed: 11, failed, not_run: 1 }));
    }

    #[test]
    fn output_that_lost_its_end_or_a_result_is_not_taken_for_the_whole() {
        let output = output();
        for end in 0..output.trim_end().len() {
            assert_eq!(Tests::read(&output[..end]), None, "{:?}", &output[..end]);
        }
        assert_eq!(Tests::read(&output.replace(RESULT, "")), None);
        assert_eq!(Tests::read(&output.replace("11 passed", "10 passed")), None);
    }

    const DOCTOR: &str = r#"{
  "format": 1, "kernel": "6.1.0", "vdso": {"found": true, "sysv_hash": true, "gnu_hash": false},
  "routes": {
    "time": {"via": "vdso", "symbol": "__vdso_clock_gettime64", "version": "LINUX_2.6"},
    "gettimeofday": {"via": "syscall", "number": 403, "reason": "x"}
  },
  "clock_source": {"current": "tsc"}, "method": null,
  "reads": [
    {"function": "time", "clock": null, "ns": 10.40, "syscall_ns": 208.00, "ratio": 0.0500},
    {"function": "getcpu", "clock": null, "ns": 10.40, "syscall_ns": null, "ratio": null}
  ],
  "cause": "fine"
}
"#;

    #[test]
    fn the_doctors_findings() {
        let routes = ["clock_gettime64", "call 403", "-", "-", "-"].map(String::from);
        let text = String::from;
        let expected = Report {
            kernel: text("6.1.0"),
            hash_tables: text("SysV"),
            routes,
            clock_source: text("tsc"),
            method: text("-"),
            cause: text("fine"),
            costs: ["10 / 208 = 0.050", "-", "-", "-", "-", "-"].map(String::from),
            tests: Tests::default(),
        };
        assert_eq!(Report::read(DOCTOR, Tests::default()), expected);
        assert_eq!(Report::read("", Tests::default()).hash_tables, "-");
    }

    #[test]
    fn a_doctor_that_was_cut_is_not_taken_for_the_whole() {
        assert!(is_whole_doctor(DOCTOR));
        for end in 0..DOCTOR.trim_end().len() {
            assert!(!is_whole_doctor(&DOCTOR[..end]), "{}", &DOCTOR[..end]);
        }
    }
}
