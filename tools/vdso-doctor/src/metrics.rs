//! `vdso-doctor --metrics`: the diagnosis as OpenMetrics text, for the textfile collector of
//! node_exporter.
//!
//! That collector reads Prometheus's older format, so every metric is a gauge, which both have.

use std::fmt::{Display, Write as _};

use vdso_doctor::{Call, Diagnosis, Location, Measurement};

/// Returns the text. `status` is the exit status of a check of the required reads.
pub(crate) fn text(diagnosis: &Diagnosis, status: u8) -> String {
    let reads: Vec<_> = diagnosis
        .measurements
        .iter()
        .filter(|measurement| !matches!(measurement.call, Call::ClockGetres(_)))
        .collect();
    let mut text = String::new();
    let mut gauge = |name: &str, help: &str, samples: &[(String, String)]| {
        let _ = write!(
            text,
            "# HELP vdso_doctor_{name} {help}\n# TYPE vdso_doctor_{name} gauge\n"
        );
        for (labels, value) in samples {
            let _ = writeln!(text, "vdso_doctor_{name}{labels} {value}");
        }
    };
    let of_reads = |value: &dyn Fn(&Measurement) -> Option<String>| {
        let sample = |measurement: &&Measurement| {
            value(measurement).map(|value| (of(measurement.call), value))
        };
        reads.iter().filter_map(sample).collect::<Vec<_>>()
    };
    let seconds = |nanos: Option<f64>| nanos.map(|nanos| format!("{nanos}e-9"));
    let status_help = "0 if the required reads stay in user space, 1 if not, 2 if unknown.";
    gauge(
        "status",
        status_help,
        &[(String::new(), status.to_string())],
    );
    if let Some(source) = &diagnosis.platform.clock_source.current {
        gauge(
            "clock_source",
            "The kernel's clock source.",
            &[(labels(&[("name", source)]), "1".into())],
        );
    }
    let location = |measurement: &Measurement| match diagnosis.location(&[measurement.call]) {
        Location::UserSpace => Some("1".into()),
        Location::Kernel => Some("0".into()),
        _ => None,
    };
    let location_help = "1 if the read is answered in user space, 0 if in the kernel.";
    gauge("in_user_space", location_help, &of_reads(&location));
    gauge(
        "read_seconds",
        "What the read costs.",
        &of_reads(&|measurement| seconds(measurement.ns)),
    );
    let call_help = "What the read costs as a system call.";
    gauge(
        "system_call_seconds",
        call_help,
        &of_reads(&|measurement| seconds(measurement.syscall_ns)),
    );
    text + "# EOF\n"
}

fn of(read: Call) -> String {
    let clock = read.clock().map(|clock| clock.to_string());
    let function = ("function", read.function());
    match &clock {
        Some(clock) => labels(&[function, ("clock", clock)]),
        None => labels(&[function]),
    }
}

fn labels(pairs: &[(&str, impl Display)]) -> String {
    let escaped = |value: &dyn Display| {
        value
            .to_string()
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n")
    };
    let pairs: Vec<_> = pairs
        .iter()
        .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
        .collect();
    format!("{{{}}}", pairs.join(","))
}
