//! The report for a person.

use std::fmt;

use vdso_time::Route;

use crate::machine::{Reader, clock_source};
use crate::proof::{Evidence, Method, READS, Reading};
use crate::{Diagnosis, Machine};

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine { kernel, architecture, supervisor, clock_source: sources, .. } = &self.machine;
        let under = supervisor.map_or(String::new(), |who| format!(", under {}", who.name()));
        writeln!(f, "vDSO\n  of Linux {kernel}, for {architecture}{under}")?;
        match &self.vdso {
            Ok(image) => writeln!(f, "  {} bytes at {:#x}", image.size, image.base)?,
            Err(error) => writeln!(f, "  none: {error}")?,
        }
        writeln!(f, "\nroutes")?;
        for line in self.routes.to_string().lines() {
            writeln!(f, "  {line}")?;
        }
        let available = sources.available.join(", ");
        match &sources.current {
            None => writeln!(f, "\nclock source\n  unknown: sysfs is not mounted")?,
            Some(current) => {
                let (reader, what) = clock_source(current);
                let reader = match reader {
                    Reader::Vdso => "the vDSO can read it",
                    Reader::VdsoIfStable => "the vDSO may read it",
                    Reader::Kernel => "only the kernel can read it",
                    Reader::Unknown => "the vDSO can probably not read it",
                };
                writeln!(f, "\nclock source\n  {current}: {what}; {reader}\n  available: {available}")?;
            }
        }
        writeln!(f, "\nreads\n  {}", self.evidence())?;
        if self.reads.iter().all(|reading| reading.ns.is_none()) {
            writeln!(f, "  no clock here is precise enough to time them")?;
        }
        let head = ["", "answered in", "resolution", "ns/read", "system call", "ratio"].map(String::from);
        for row in [head].into_iter().chain(self.reads.iter().map(row)) {
            let [read, place, resolution, here, call, ratio] = row;
            let line = format!("{read:42} {place:19} {resolution:>11} {here:>9} {call:>11} {ratio:>6}");
            writeln!(f, "  {}", line.trim_end())?;
        }
        writeln!(f, "\nverdict\n  {}", self.verdict)
    }
}

impl Diagnosis {
    /// How the places are known.
    fn evidence(&self) -> String {
        let all = match self.cpus.len() {
            0 => "the CPUs that this thread, which cannot be moved, ran on".into(),
            1 => "1 CPU".into(),
            cpus => format!("each of {cpus} CPUs"),
        };
        match self.method {
            None if self.routes.time == Route::Libc => {
                "libc answers each of them; it is unknown where".into()
            }
            None => "without a vDSO each of them is a system call".into(),
            Some(Method::Seccomp) => {
                format!(
                    "proved for these reads, now: {READS} of each on {all}, where seccomp denies clock calls"
                )
            }
            Some(Method::Timing) => "judged by their cost, which is no proof".into(),
        }
    }
}

fn row(reading: &Reading) -> [String; 6] {
    let place = reading.place.name();
    let place = match (reading.evidence, reading.entered, reading.reads) {
        (Evidence::Refused, ..) => format!("refused, {}", reading.error.as_deref().unwrap_or_default()),
        (Evidence::Likely, ..) => format!("{place}, likely"),
        (_, Some(entered), Some(reads)) if entered != 0 && entered != reads => {
            format!("{place}, {entered} of {reads}")
        }
        _ => place.into(),
    };
    let number = |value: Option<f64>, digits| value.map_or(String::new(), |v| format!("{v:.digits$}"));
    [
        reading.read.to_string(),
        place,
        reading.resolution_ns.map_or(String::new(), duration),
        number(reading.ns, 1),
        number(reading.syscall_ns, 1),
        number(reading.ratio(), 3),
    ]
}

/// In the largest unit that divides it.
fn duration(nanos: i64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1000, "µs")];
    let unit = units.into_iter().find(|(size, _)| nanos > 0 && nanos % size == 0).unwrap_or((1, "ns"));
    format!("{} {}", nanos / unit.0, unit.1)
}
