//! The report for a person: the verdict, then what supports it, in lines of 80 columns.

use std::fmt;

use vdso_time::{ClockId, Route};

use crate::proof::{Evidence, Location, Measurement};
use crate::{Call, Cause, Diagnosis, Platform};

/// The longest line.
const COLUMNS: usize = 80;

/// The width of the titles on the left.
const TITLE: usize = 14;

/// `{}` shows the usual reads and those that the verdict is about; `{:#}` shows everything.
impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_full = f.alternate();
        writeln!(f, "{}\n", wrapped("", &self.verdict))?;
        let Platform {
            kernel,
            architecture,
            supervisor,
            clock_source: sources,
            ..
        } = &self.platform;
        writeln!(f, "{}", wrapped("evidence", &self.evidence()))?;
        writeln!(
            f,
            "{}",
            wrapped("clock source", &self.platform.described_source())
        )?;
        let under = supervisor.map_or(String::new(), |who| format!(", under {}", who.name()));
        let image = match &self.vdso {
            Ok(image) if is_full => format!("vDSO of {} bytes at {:#x}", image.size, image.base),
            Ok(image) => format!("vDSO of {} bytes", image.size),
            Err(error) => error.to_string(),
        };
        writeln!(
            f,
            "{}",
            wrapped(
                "kernel",
                &format!("Linux {kernel}, {architecture}{under}; {image}")
            )
        )?;
        if is_full {
            writeln!(f, "{}", wrapped("available", &sources.available.join(", ")))?;
            for (function, route) in self.routes.functions() {
                writeln!(f, "{}", wrapped(function, &route.to_string()))?;
            }
        }
        writeln!(f)?;
        if self
            .measurements
            .iter()
            .all(|measurement| measurement.ns.is_none())
        {
            writeln!(f, "No clock here is precise enough to time the reads.")?;
        }
        let shown = |measurement: &&Measurement| {
            is_full || self.about.contains(&measurement.call) || is_usual(measurement.call)
        };
        let measurements: Vec<_> = self.measurements.iter().filter(shown).collect();
        f.write_str(&table(&measurements))?;
        if self.is_for_who() {
            writeln!(
                f,
                "\n`sudo vdso-who top` shows which programs read the clock."
            )?;
        }
        if !is_full {
            writeln!(
                f,
                "\n`vdso-doctor --verbose` shows all reads and their routes."
            )?;
        }
        Ok(())
    }
}

impl Diagnosis {
    /// Returns whether reads are slow, and vdso-who works here.
    fn is_for_who(&self) -> bool {
        let Platform {
            supervisor,
            architecture,
            ..
        } = self.platform;
        let works = supervisor.is_none() && ["x86_64", "aarch64"].contains(&architecture);
        works && (self.location(&self.about) == Location::Kernel || self.cause == Cause::Slow)
    }

    /// Returns how the locations are known.
    fn evidence(&self) -> String {
        let cpus = match self.cpus.len() {
            1 => "1 CPU".into(),
            cpus => format!("each of {cpus} CPUs"),
        };
        let calls = crate::CALLS_OF_A_DIAGNOSIS;
        match &self.unproved {
            _ if self.routes.time == Route::Libc => {
                "libc answers each read; it is unknown where".into()
            }
            _ if self.vdso.is_err() => "without a vDSO each read is a system call".into(),
            None => {
                format!("proof: {calls} of each read on {cpus}, while seccomp denied clock calls")
            }
            Some(why) => {
                format!(
                    "no proof, because {why}. A read in user space costs a small part of the call"
                )
            }
        }
    }
}

fn is_usual(read: Call) -> bool {
    let clocks = [ClockId::MONOTONIC_COARSE, ClockId::PROCESS_CPUTIME].map(Call::ClockGettime);
    clocks.contains(&read)
        || Call::USUAL.contains(&read)
        || matches!(read, Call::Time | Call::Gettimeofday)
}

/// Returns a table of the measurements, with a heading for the clocks of a function.
pub(crate) fn table(measurements: &[&Measurement]) -> String {
    let line = |cells: [&str; 5]| {
        let [read, location, resolution, here, call] = cells;
        let line = format!("{read:26} {location:20} {resolution:>10} {here:>9} {call:>9}");
        line.trim_end().to_owned() + "\n"
    };
    let mut text = line(["", "answered in", "resolution", "read, ns", "call, ns"]);
    let mut last = "";
    for measurement in measurements {
        let (read, function) = (measurement.call, measurement.call.function());
        let name = read
            .clock()
            .map_or(read.to_string(), |clock| format!("  {clock:?}"));
        if read.clock().is_some() && last != function {
            text += &line([function, "", "", "", ""]);
        }
        last = function;
        let number =
            |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.1}"));
        let resolution = measurement.resolution_ns.map_or(String::new(), duration);
        let [here, call] = [measurement.ns, measurement.syscall_ns].map(number);
        text += &line([&name, &location(measurement), &resolution, &here, &call]);
    }
    text
}

fn location(measurement: &Measurement) -> String {
    let location = measurement.location.name();
    match (measurement.evidence, measurement.entered, measurement.calls) {
        (Evidence::Refused, ..) => {
            format!(
                "refused, {}",
                measurement.error.as_deref().unwrap_or_default()
            )
        }
        (_, Some(entered), Some(reads)) if entered != 0 && entered != reads => {
            format!("{location}, {entered}/{reads}")
        }
        _ => location.into(),
    }
}

/// Formats a duration in the largest unit that divides it.
fn duration(nanos: i64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1000, "µs")];
    let unit = units
        .into_iter()
        .find(|(size, _)| nanos > 0 && nanos % size == 0)
        .unwrap_or((1, "ns"));
    format!("{} {}", nanos / unit.0, unit.1)
}

/// Returns a paragraph with a title on its left. A command, in backticks, stays in one line.
pub(crate) fn wrapped(title: &str, text: &str) -> String {
    let spaces = " ".repeat(if title.is_empty() { 0 } else { TITLE });
    let first = format!("{title:width$}", width = spaces.len());
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(index, part)| {
        if index % 2 == 1 {
            part.replace(' ', "\u{a0}")
        } else {
            part.into()
        }
    });
    let options = textwrap::Options::new(COLUMNS)
        .initial_indent(&first)
        .subsequent_indent(&spaces);
    let options = options
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
        .break_words(false);
    textwrap::fill(&parts.collect::<Vec<_>>().join("`"), options).replace('\u{a0}', " ")
}
