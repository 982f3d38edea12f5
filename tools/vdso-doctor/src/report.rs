//! The report for a person: the verdict, then what supports it, in lines of 80 columns.

use std::fmt;

use vdso_time::{ClockId, Route};

use crate::proof::{Evidence, Location, Measurement};
use crate::{Call, Cause, Diagnosis, Platform};

/// The longest line.
const COLUMNS: usize = 80;

/// The width of the titles on the left.
const TITLE: usize = 14;

/// `{}` shows the usual calls and those that the verdict is about; `{:#}` shows everything.
impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_full = f.alternate();
        let platform = &self.platform;
        writeln!(f, "{}\n", wrapped("", &self.verdict))?;
        writeln!(f, "{}", wrapped("evidence", &self.evidence()))?;
        writeln!(
            f,
            "{}",
            wrapped("clock source", &platform.described_source())
        )?;
        writeln!(f, "{}", wrapped("kernel", &self.kernel(is_full)))?;
        if is_full {
            let available = platform.clock_source.available.join(", ");
            writeln!(f, "{}", wrapped("available", &available))?;
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
            writeln!(
                f,
                "The reads are not timed, because no precise clock can be read here."
            )?;
        }
        let mut shown = Vec::new();
        for measurement in &self.measurements {
            let call = measurement.call;
            if is_full || self.about.contains(&call) || is_usual(call) {
                shown.push(measurement);
            }
        }
        f.write_str(&table(&shown))?;
        if self.is_for_who() {
            writeln!(
                f,
                "\n`sudo \"$(command -v vdso-who)\" top` shows which programs read the clock."
            )?;
        }
        if !is_full {
            writeln!(
                f,
                "\n`vdso-doctor --verbose` shows all calls and their routes."
            )?;
        }
        Ok(())
    }
}

impl Diagnosis {
    /// Describes the kernel, what runs this process, and the vDSO.
    fn kernel(&self, is_full: bool) -> String {
        let Platform {
            kernel,
            architecture,
            supervisor,
            ..
        } = &self.platform;
        let under = match supervisor {
            Some(supervisor) => format!(", under {}", supervisor.name()),
            None => String::new(),
        };
        let image = match &self.vdso {
            Ok(image) if is_full => format!("vDSO of {} bytes at {:#x}", image.size, image.base),
            Ok(image) => format!("vDSO of {} bytes", image.size),
            Err(error) => error.to_string(),
        };
        format!("Linux {kernel}, {architecture}{under}; {image}")
    }

    /// Returns whether the report should recommend vdso-who: reads are slow or enter the kernel,
    /// and vdso-who works on this machine.
    fn is_for_who(&self) -> bool {
        let Platform {
            supervisor,
            architecture,
            ..
        } = self.platform;
        let works = supervisor.is_none() && ["x86_64", "aarch64"].contains(&architecture);
        works && (self.location(&self.about) == Location::Kernel || self.cause == Cause::Slow)
    }

    /// Returns the evidence for the locations.
    fn evidence(&self) -> String {
        if self.routes.time == Route::Libc {
            return "libc answers each call; whether it enters the kernel is unknown".into();
        }
        if self.vdso.is_err() {
            return "without a vDSO each call is a system call".into();
        }
        if let Some(why) = &self.unproved {
            let is_proved = |known: &Measurement| known.evidence == Evidence::Proved;
            if self.measurements.iter().any(is_proved) {
                return format!("proof for the calls that entered the kernel, although {why}");
            }
            return format!(
                "no proof, because {why}. A read in user space costs a small fraction of the system call"
            );
        }
        let cpus = match self.cpus.len() {
            1 => "1 CPU".into(),
            cpus => format!("each of {cpus} CPUs"),
        };
        let calls = crate::CALLS_OF_A_DIAGNOSIS;
        format!("proof: {calls} calls of each kind on {cpus}, while seccomp denied clock calls")
    }
}

fn is_usual(call: Call) -> bool {
    match call {
        Call::Time | Call::Gettimeofday => true,
        Call::ClockGettime(clock) => [
            ClockId::REALTIME,
            ClockId::MONOTONIC,
            ClockId::MONOTONIC_COARSE,
            ClockId::PROCESS_CPUTIME,
        ]
        .contains(&clock),
        _ => false,
    }
}

/// Returns a table of the measurements. A row with the name of a function stands above the rows of
/// the function's clocks.
///
/// The resolution is what clock_getres(2) states, and the step is the smallest one that was seen.
pub(crate) fn table(measurements: &[&Measurement]) -> String {
    // The title of the last two columns.
    let mut text = format!("{:>COLUMNS$}\n", "cost in ns of a");
    text += &row(["", "answered in", "resolution", "step", "read", "syscall"]);
    let mut last = "";
    for measurement in measurements {
        let function = measurement.call.function();
        let name = match measurement.call.clock() {
            Some(clock) => format!("  {clock}"),
            None => measurement.call.to_string(),
        };
        if measurement.call.clock().is_some() && last != function {
            text += &row([function, "", "", "", "", ""]);
        }
        last = function;
        text += &row([
            &name,
            &location(measurement),
            &duration(measurement.resolution_ns),
            &about(measurement.step_ns),
            &decimal(measurement.ns),
            &decimal(measurement.syscall_ns),
        ]);
    }
    text
}

/// Returns a row of the table, which has 80 columns at most.
fn row(cells: [&str; 6]) -> String {
    let [name, location, resolution, step, here, system_call] = cells;
    let row =
        format!("{name:26} {location:15} {resolution:>10} {step:>8} {here:>8} {system_call:>8}");
    row.trim_end().to_owned() + "\n"
}

fn location(measurement: &Measurement) -> String {
    let location = measurement.location.name();
    if measurement.evidence == Evidence::Refused {
        let error = measurement.error.as_deref().unwrap_or_default();
        return format!("refused, {error}");
    }
    let entered = measurement.entered.unwrap_or(0);
    let calls = measurement.calls.unwrap_or(0);
    if entered != 0 && entered != calls {
        return format!("{location}, {entered}/{calls}");
    }
    location.into()
}

fn decimal(value: Option<f64>) -> String {
    match value {
        Some(value) => format!("{value:.1}"),
        None => String::new(),
    }
}

/// Formats a duration in the largest unit that divides it.
fn duration(nanos: Option<i64>) -> String {
    let Some(nanos) = nanos else {
        return String::new();
    };
    for (size, unit) in [(1_000_000_000, "s"), (1_000_000, "ms"), (1000, "µs")] {
        if nanos > 0 && nanos % size == 0 {
            return format!("{} {unit}", nanos / size);
        }
    }
    format!("{nanos} ns")
}

/// Formats a measured duration, with one decimal except for nanoseconds.
fn about(nanos: Option<i64>) -> String {
    let Some(nanos) = nanos else {
        return String::new();
    };
    // In tenths of the unit.
    let (tenths, unit) = match nanos {
        0..1000 => return format!("{nanos} ns"),
        1000..1_000_000 => (nanos / 100, "µs"),
        1_000_000..1_000_000_000 => ((nanos + 50_000) / 100_000, "ms"),
        _ => (nanos / 100_000_000, "s"),
    };
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}

/// Returns a paragraph with a title on its left. A command, in backticks, stays in one line.
#[must_use]
pub fn wrapped(title: &str, text: &str) -> String {
    let width = if title.is_empty() { 0 } else { TITLE };
    let first = format!("{title:width$}");
    let spaces = " ".repeat(width);
    let mut unbroken = String::new();
    let mut is_command = false;
    for letter in text.chars() {
        if letter == '`' {
            is_command = !is_command;
        }
        let is_kept = is_command && letter == ' ';
        unbroken.push(if is_kept { '\u{a0}' } else { letter });
    }
    let options = textwrap::Options::new(COLUMNS)
        .initial_indent(&first)
        .subsequent_indent(&spaces)
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
        .break_words(false);
    textwrap::fill(&unbroken, options).replace('\u{a0}', " ")
}
