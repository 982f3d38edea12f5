//! What the programs of the matrix printed: the doctor's JSON, and the output of test programs.

use serde_json::Value;

/// The results of one test program or several.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Tests {
    pub(crate) passed: u32,
    pub(crate) failed: Vec<String>,
    pub(crate) not_run: usize,
}

impl Tests {
    /// Reads the output of a program that ran with `--show-output`. `None` if it is incomplete: the
    /// first line gives the number of tests, and the last one counts the results. The output of test
    /// programs that a test started may be between them.
    pub(crate) fn read(out: &str) -> Option<Self> {
        let expected = out.lines().find_map(|line| line.strip_prefix("running "))?.split(' ').next()?;
        let result = out.trim_end().lines().next_back()?.strip_prefix("test result: ")?;
        let count = |word| {
            let mut parts = result.split([';', '.']).map(str::trim);
            parts.find_map(|part| part.strip_suffix(word))?.trim().parse::<u32>().ok()
        };
        let [passed, failed] = [count("passed")?, count("failed")?];
        let all = passed + failed + count("ignored")? + count("measured")?;
        let list = out.rsplit_once("\nfailures:\n").map_or("", |(_, list)| list);
        let names = list.lines().map_while(|line| line.strip_prefix("    ")).map(String::from);
        let failed: Vec<String> = names.take(failed as usize).collect();
        let is_whole = expected.parse() == Ok(all)
            && failed.len() == count("failed")? as usize
            && result.rsplit_once("finished in ").is_some_and(|(_, time)| time.ends_with('s'));
        let not_run = out.lines().filter(|line| line.starts_with("not run here")).count();
        is_whole.then_some(Self { passed, failed, not_run })
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed.extend(other.failed);
        self.not_run += other.not_run;
    }
}

/// The functions whose routes the doctor reports.
pub(crate) const FUNCTIONS: [&str; 5] = ["time", "gettimeofday", "clock_gettime", "clock_getres", "getcpu"];

/// Reads the output of `doctor --json`. `None` if it is incomplete.
pub(crate) fn read_doctor(out: &str) -> Option<Value> {
    let doctor: Value = serde_json::from_str(out).ok()?;
    (doctor["format"] == 1 && doctor["cause"].is_string()).then_some(doctor)
}

/// The kernel, the hash tables of the image, the routes, the clock source, the doctor's method and
/// finding, and the costs of `time()` and `clock_gettime(CLOCK_MONOTONIC)`.
pub(crate) fn doctor_cells(doctor: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let hash_tables = match (doctor["vdso"]["sysv_hash"].as_bool(), doctor["vdso"]["gnu_hash"].as_bool()) {
        (Some(true), Some(true)) => "both",
        (Some(true), _) => "SysV",
        (_, Some(true)) => "GNU",
        (Some(_), Some(_)) => "none",
        _ => "-",
    };
    let mut cells = vec![text(&doctor["kernel"]), hash_tables.into()];
    cells.extend(FUNCTIONS.map(|function| route(&doctor["routes"][function])));
    cells.push(text(&doctor["clock_source"]["current"]));
    cells.push(format!("{}: {}", text(&doctor["method"]), text(&doctor["cause"])));
    for (function, clock) in [("time", Value::Null), ("clock_gettime", "CLOCK_MONOTONIC".into())] {
        let reads = doctor["reads"].as_array().into_iter().flatten();
        let read = reads.into_iter().find(|read| read["function"] == function && read["clock"] == clock);
        let costs = read.and_then(|read| read["ns"].as_f64().zip(read["syscall_ns"].as_f64()));
        cells.push(costs.map_or("-".into(), |(vdso, syscall)| format!("{vdso:.0} / {syscall:.0}")));
    }
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
    use super::{Tests, doctor_cells, read_doctor};

    const RESULT: &str = "test result: FAILED. 11 passed; 1 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.01s\n";

    /// Contains the output of a test program that a test started.
    fn output() -> String {
        format!(
            "\nrunning 13 tests\ntest a ... ok\ntest b::c ... FAILED\n\nsuccesses:\n\n---- a stdout ----\n\
             not run here: no valgrind\n\nfailures:\n\n---- b::c stdout ----\nrunning 1 test\n\
             test b::c ... FAILED\n\nfailures:\n    b::c\n\ntest result: FAILED. 0 passed; 1 failed; \
             0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n\nfailures:\n    b::c\n\n{RESULT}\n"
        )
    }

    #[test]
    fn only_complete_output_of_a_test_program_counts() {
        let output = output();
        let failed = vec!["b::c".into()];
        assert_eq!(Tests::read(&output), Some(Tests { passed: 11, failed, not_run: 1 }));
        for end in 0..output.trim_end().len() {
            assert_eq!(Tests::read(&output[..end]), None, "{:?}", &output[..end]);
        }
        assert_eq!(Tests::read(&output.replace(RESULT, "")), None);
        assert_eq!(Tests::read(&output.replace("11 passed", "10 passed")), None);
    }

    #[test]
    fn the_doctors_findings() {
        let doctor = r#"{"format": 1, "kernel": "6.1.0", "vdso": {"found": true, "sysv_hash": true, "gnu_hash": false},
            "routes": {"time": {"via": "vdso", "symbol": "__vdso_clock_gettime64"},
                "gettimeofday": {"via": "syscall", "number": 403, "reason": "x"}},
            "clock_source": {"current": "tsc"}, "method": null, "cause": "fine", "reads": [
                {"function": "time", "clock": null, "ns": 10.40, "syscall_ns": 208.00},
                {"function": "clock_gettime", "clock": "CLOCK_MONOTONIC", "ns": 10.40, "syscall_ns": null}]}"#;
        let cells = doctor_cells(&read_doctor(doctor).unwrap());
        let expected =
            "6.1.0|SysV|clock_gettime64|call 403|-|-|-|tsc|-: fine|10 / 208|-".split('|').collect::<Vec<_>>();
        assert_eq!(cells, expected);
        assert_eq!(doctor_cells(&serde_json::Value::Null).len(), expected.len());
        assert!((0..doctor.len()).all(|end| read_doctor(&doctor[..end]).is_none()));
    }
}
