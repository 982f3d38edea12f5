//! `vdso-doctor --metrics`: the diagnosis as OpenMetrics text, for the textfile collector of
//! node_exporter.
//!
//! The textfile collector reads Prometheus's own text format, which is older than OpenMetrics and
//! has fewer types. So every metric is a gauge, a type that exists in both formats.

use std::fmt::{Display, Write as _};

use vdso_doctor::{Call, Diagnosis, Location, Measurement};

/// Returns the text. `status` is the exit status of a check of the required reads.
pub(crate) fn text(diagnosis: &Diagnosis, status: u8) -> String {
    let mut text = Text(String::new());
    text.begin(
        "status",
        "0 if the required reads stay in user space, 1 if not, 2 if unknown.",
    );
    text.sample("status", "", status);
    if let Some(source) = &diagnosis.platform.clock_source.current {
        text.begin("clock_source", "The kernel's clock source.");
        text.sample("clock_source", &labels(&[("name", source)]), 1);
    }
    let location = |measurement: &Measurement| match diagnosis.location(&[measurement.call]) {
        Location::UserSpace => Some("1".into()),
        Location::Kernel => Some("0".into()),
        _ => None,
    };
    text.calls(
        diagnosis,
        "in_user_space",
        "1 if the read is answered in user space, 0 if in the kernel.",
        location,
    );
    text.calls(
        diagnosis,
        "read_seconds",
        "The cost of the read.",
        |measurement| measurement.ns.map(seconds),
    );
    text.calls(
        diagnosis,
        "system_call_seconds",
        "The cost of the same read as a system call.",
        |measurement| measurement.syscall_ns.map(seconds),
    );
    text.0 + "# EOF\n"
}

fn seconds(nanos: f64) -> String {
    format!("{nanos}e-9")
}

struct Text(String);

impl Text {
    fn begin(&mut self, name: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP vdso_doctor_{name} {help}");
        let _ = writeln!(self.0, "# TYPE vdso_doctor_{name} gauge");
    }

    fn sample(&mut self, name: &str, labels: &str, value: impl Display) {
        let _ = writeln!(self.0, "vdso_doctor_{name}{labels} {value}");
    }

    /// Writes a metric. Each call gets a sample, except `clock_getres` and the calls for which
    /// `value` returns `None`.
    fn calls(
        &mut self,
        diagnosis: &Diagnosis,
        name: &str,
        help: &str,
        value: impl Fn(&Measurement) -> Option<String>,
    ) {
        self.begin(name, help);
        for measurement in &diagnosis.measurements {
            if matches!(measurement.call, Call::ClockGetres(_)) {
                continue;
            }
            if let Some(value) = value(measurement) {
                self.sample(name, &labels_of(measurement.call), value);
            }
        }
    }
}

fn labels_of(call: Call) -> String {
    let function = ("function", call.function());
    match call.clock() {
        Some(clock) => labels(&[function, ("clock", &clock.to_string())]),
        None => labels(&[function]),
    }
}

fn labels(pairs: &[(&str, &str)]) -> String {
    let mut words = Vec::new();
    for (name, value) in pairs {
        let value = value
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n");
        words.push(format!("{name}=\"{value}\""));
    }
    format!("{{{}}}", words.join(","))
}
