//! `vdso-doctor --metrics`: the diagnosis as OpenMetrics text, for the textfile collector of
//! node_exporter.
//!
//! That collector reads Prometheus's older format, so every metric is a gauge, which both have.

use std::fmt::{Display, Write as _};

use vdso_doctor::{Diagnosis, Place, Read, Reading};

/// Returns the text. `status` is the exit status of a check of the required reads.
pub(crate) fn text(diagnosis: &Diagnosis, status: u8) -> String {
    let reads: Vec<_> = diagnosis
        .reads
        .iter()
        .filter(|reading| !matches!(reading.read, Read::ClockGetres(_)))
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
    let of_reads = |value: &dyn Fn(&Reading) -> Option<String>| {
        let sample = |reading: &&Reading| value(reading).map(|value| (of(reading.read), value));
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
    let place = |reading: &Reading| match diagnosis.place(&[reading.read]) {
        Place::UserSpace => Some("1".into()),
        Place::Kernel => Some("0".into()),
        _ => None,
    };
    let place_help = "1 if the read is answered in user space, 0 if in the kernel.";
    gauge("in_user_space", place_help, &of_reads(&place));
    gauge(
        "read_seconds",
        "What the read costs.",
        &of_reads(&|reading| seconds(reading.ns)),
    );
    let call_help = "What the read costs as a system call.";
    gauge(
        "system_call_seconds",
        call_help,
        &of_reads(&|reading| seconds(reading.syscall_ns)),
    );
    text + "# EOF\n"
}

fn of(read: Read) -> String {
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
