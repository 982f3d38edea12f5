//! What came of one combination, read from what its programs printed.

/// The functions whose routes are told, as the doctor names them.
pub(crate) const FUNCTIONS: [&str; 5] = ["time", "gettimeofday", "clock_gettime", "clock_getres", "getcpu"];

/// A read whose cost is told.
pub(crate) struct Cost {
    pub(crate) title: &'static str,
    /// What the doctor's line of it begins with.
    line: &'static str,
}

const fn cost(title: &'static str, line: &'static str) -> Cost {
    Cost { title, line }
}

pub(crate) const COSTS: [Cost; 6] = [
    cost("time", "{\"function\": \"time\","),
    cost("gettimeofday", "{\"function\": \"gettimeofday\","),
    cost("clock_gettime MONOTONIC", "{\"function\": \"clock_gettime\", \"clock\": \"CLOCK_MONOTONIC\","),
    cost("MONOTONIC_COARSE", "{\"function\": \"clock_gettime\", \"clock\": \"CLOCK_MONOTONIC_COARSE\","),
    cost("clock_getres", "{\"function\": \"clock_getres\", \"clock\": \"CLOCK_MONOTONIC\","),
    cost("getcpu", "{\"function\": \"getcpu\","),
];

/// What the doctor's JSON begins with.
const DOCTOR: &str = "{\"format\": 1, ";

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
    /// Test programs that told how many of their tests passed.
    pub(crate) told: usize,
    pub(crate) passed: u32,
    pub(crate) failed: Vec<String>,
    pub(crate) not_run: usize,
}

impl Report {
    /// Of the output of test programs with `--show-output`, and of `doctor --json` behind them.
    pub(crate) fn read(output: &str) -> Self {
        let (tests, doctor) = output.split_at(output.find(DOCTOR).unwrap_or(output.len()));
        let mut report = Self::default();
        for line in tests.lines() {
            if let Some(result) = line.strip_prefix("test result: ") {
                let passed = result.split_whitespace().zip(result.split_whitespace().skip(1));
                let passed =
                    passed.filter(|(_, word)| *word == "passed;").find_map(|(count, _)| count.parse().ok());
                report.passed += passed.unwrap_or(0);
                report.told += 1;
            } else if let Some(test) =
                line.strip_prefix("test ").and_then(|line| line.strip_suffix(" ... FAILED"))
            {
                report.failed.push(test.into());
            } else if line.starts_with("not run here") {
                report.not_run += 1;
            }
        }
        let text = |name| string(doctor, name).unwrap_or("-").to_string();
        report.kernel = text("kernel");
        report.clock_source = text("current");
        report.method = text("method");
        report.cause = text("cause");
        report.hash_tables = match (value(doctor, "sysv_hash"), value(doctor, "gnu_hash")) {
            (Some("true"), Some("true")) => "both",
            (Some("true"), _) => "SysV",
            (_, Some("true")) => "GNU",
            (Some(_), Some(_)) => "none",
            _ => "-",
        }
        .into();
        let routes = value_from(doctor, "routes").unwrap_or_default();
        report.routes = FUNCTIONS.map(|function| route(value_from(routes, function).unwrap_or_default()));
        report.costs = COSTS.map(|cost| {
            let line = doctor.lines().find(|line| line.starts_with(cost.line)).unwrap_or_default();
            let number = |name| value(line, name)?.parse::<f64>().ok();
            match (number("ns"), number("syscall_ns"), number("ratio")) {
                (Some(here), Some(call), Some(ratio)) => format!("{here:.0} / {call:.0} = {ratio:.3}"),
                _ => "-".into(),
            }
        });
        report
    }
}

/// The symbol without what all of them begin with, or the number of the system call.
fn route(text: &str) -> String {
    let symbol = string(text, "symbol").map(|symbol| {
        let short = ["__vdso_", "__kernel_"].iter().find_map(|prefix| symbol.strip_prefix(prefix));
        short.unwrap_or(symbol).to_string()
    });
    match string(text, "via") {
        Some("vdso") => symbol.unwrap_or_default(),
        Some("syscall") => format!("call {}", value(text, "number").unwrap_or("?")),
        _ => "-".into(),
    }
}

/// What follows the first member of this name.
fn value_from<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    json.split_once(&format!("\"{name}\": ")).map(|(_, rest)| rest)
}

fn value<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    value_from(json, name)?.split([',', '}']).next()
}

fn string<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    value_from(json, name)?.strip_prefix('"')?.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::Report;

    const OUTPUT: &str = "\
running 3 tests
test a ... ok
test b::c ... FAILED
not run here: no valgrind
test result: FAILED. 11 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s
test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s
{\"format\": 1, \"kernel\": \"6.1.0\", \"vdso\": {\"found\": true, \"sysv_hash\": true, \"gnu_hash\": false}, \"routes\": \
{\"time\": {\"via\": \"vdso\", \"symbol\": \"__vdso_clock_gettime64\", \"version\": \"LINUX_2.6\"}, \
\"gettimeofday\": {\"via\": \"syscall\", \"number\": 403, \"reason\": \"x\"}}, \
\"clock_source\": {\"current\": \"tsc\"}, \"method\": null, \"reads\": [
{\"function\": \"time\", \"clock\": null, \"ns\": 10.40, \"syscall_ns\": 208.00, \"ratio\": 0.0500},
{\"function\": \"getcpu\", \"clock\": null, \"ns\": 10.40, \"syscall_ns\": null, \"ratio\": null}
], \"cause\": \"fine\"}
";

    #[test]
    fn tests_and_doctor() {
        let report = Report::read(OUTPUT);
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
            told: 2,
            passed: 13,
            failed: vec![text("b::c")],
            not_run: 1,
        };
        assert_eq!(report, expected);
        assert_eq!(Report::read("").hash_tables, "-");
    }
}
