//! The report for a person.

use std::fmt::{self, Write as _};

use vdso_time::Route;

use crate::machine::{Reader, clock_source};
use crate::proof::{Evidence, Method, Place, READS, Reading};
use crate::{Cause, Diagnosis};

const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";
const BOLD: &str = "1";

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Report { diagnosis: self, colours: false }.write(f)
    }
}

impl Diagnosis {
    /// Returns the report with colours for a terminal.
    #[must_use]
    pub fn in_colours(&self) -> String {
        let mut text = String::new();
        let _ = Report { diagnosis: self, colours: true }.write(&mut text); // a String takes every write
        text
    }
}

struct Report<'a> {
    diagnosis: &'a Diagnosis,
    colours: bool,
}

impl Report<'_> {
    fn write(&self, out: &mut impl fmt::Write) -> fmt::Result {
        self.image(out)?;
        writeln!(out, "\n{}", self.coloured(BOLD, "routes"))?;
        for line in self.diagnosis.routes.to_string().lines() {
            writeln!(out, "  {line}")?;
        }
        self.clock_source(out)?;
        self.method(out)?;
        for reading in &self.diagnosis.reads {
            self.reading(out, reading)?;
        }
        let colour = match self.diagnosis.cause {
            Cause::Fine => GREEN,
            Cause::LikelyFine
            | Cause::Slow
            | Cause::CannotTell
            | Cause::HiddenByValgrind
            | Cause::Emulated
            | Cause::Libc => YELLOW,
            _ => RED,
        };
        writeln!(out, "\n{}", self.coloured(BOLD, "verdict"))?;
        writeln!(out, "  {}", self.coloured(colour, &self.diagnosis.verdict))
    }

    fn coloured(&self, colour: &str, text: &str) -> String {
        if self.colours { format!("\x1b[{colour}m{text}\x1b[0m") } else { text.into() }
    }

    fn image(&self, out: &mut impl fmt::Write) -> fmt::Result {
        let machine = &self.diagnosis.machine;
        let under = machine.supervisor.map_or(String::new(), |who| format!(", under {}", who.name()));
        writeln!(out, "{}", self.coloured(BOLD, "vDSO"))?;
        writeln!(out, "  of Linux {}, for {}{under}", machine.kernel, machine.architecture)?;
        let image = match &self.diagnosis.vdso {
            Ok(image) => image,
            Err(error) => return writeln!(out, "  none: {error}"),
        };
        let tables = match (image.sysv_hash, image.gnu_hash) {
            (true, true) => "DT_HASH and DT_GNU_HASH",
            (true, false) => "DT_HASH",
            (false, true) => "DT_GNU_HASH",
            (false, false) => "no hash table",
        };
        let versions = image.versions.join(", ");
        writeln!(out, "  at {:#x}, by {}", image.base, image.source)?;
        writeln!(out, "  ELF{}, {} bytes, {tables}, versions: {versions}", image.class, image.size)?;
        for symbol in &image.symbols {
            let name = if symbol.name.is_empty() { "(blanked)" } else { &symbol.name };
            let version = symbol.version.as_ref().map_or(String::new(), |version| format!("@{version}"));
            let weak = if symbol.weak { ", weak" } else { "" };
            writeln!(out, "  {:#x} {name}{version}, {} bytes{weak}", symbol.address, symbol.size)?;
        }
        Ok(())
    }

    fn clock_source(&self, out: &mut impl fmt::Write) -> fmt::Result {
        writeln!(out, "\n{}", self.coloured(BOLD, "clock source"))?;
        let sources = &self.diagnosis.machine.clock_source;
        let Some(current) = &sources.current else {
            return writeln!(out, "  unknown: sysfs is not mounted");
        };
        let (reader, what) = clock_source(current);
        let reader = match reader {
            Reader::Vdso => "the vDSO can read it",
            Reader::VdsoIfStable => "the vDSO can read it if the hypervisor says it is the same on all CPUs",
            Reader::Kernel => "only the kernel can read it",
            Reader::Unknown => "the vDSO can probably not read it",
        };
        writeln!(out, "  {current}: {what}; {reader}")?;
        writeln!(out, "  available: {}", sources.available.join(", "))
    }

    /// How the places are known, and the head of the table.
    fn method(&self, out: &mut impl fmt::Write) -> fmt::Result {
        writeln!(out, "\n{}", self.coloured(BOLD, "reads"))?;
        let all = match self.diagnosis.cpus.len() {
            0 => "the CPUs that this thread, which cannot be moved, ran on".into(),
            1 => "1 CPU".into(),
            cpus => format!("each of {cpus} CPUs"),
        };
        let proved = format!("proved for these reads, now: {READS} of each on {all}");
        match self.diagnosis.method {
            None if self.diagnosis.routes.time == Route::Libc => {
                writeln!(out, "  libc answers each of them; it is unknown where")?;
            }
            None => writeln!(out, "  without a vDSO each of them is a system call")?,
            Some(Method::Dispatch) => writeln!(out, "  {proved}, under Syscall User Dispatch")?,
            Some(Method::Seccomp) => {
                writeln!(out, "  {proved}, in threads whose clock calls a seccomp filter denies")?;
            }
            Some(Method::Timing) => writeln!(out, "  judged by their cost, which is no proof")?,
        }
        if self.diagnosis.reads.iter().all(|reading| reading.ns.is_none()) {
            writeln!(out, "  no clock here is precise enough to time them")?;
        }
        writeln!(
            out,
            "  {:42} {:19} {:>11} {:>9} {:>11} {:>6}",
            "", "answered in", "resolution", "ns/read", "system call", "ratio"
        )
    }

    fn reading(&self, out: &mut impl fmt::Write, reading: &Reading) -> fmt::Result {
        let (colour, place) = place(reading);
        let place = self.coloured(colour, &format!("{place:19}"));
        let resolution = reading.resolution_ns.map_or(String::new(), duration);
        let number = |value: Option<f64>, digits| value.map_or(String::new(), |v| format!("{v:.digits$}"));
        let (here, call) = (number(reading.ns, 1), number(reading.syscall_ns, 1));
        let ratio = number(reading.ratio, 3);
        let mut line = String::new();
        write!(line, "  {:42} {place} {resolution:>11} {here:>9} {call:>11} {ratio:>6}", reading.read)?;
        writeln!(out, "{}", line.trim_end())
    }
}

/// In the largest unit that divides it.
fn duration(nanos: i64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1000, "µs")];
    let unit = units.into_iter().find(|(size, _)| nanos > 0 && nanos % size == 0).unwrap_or((1, "ns"));
    format!("{} {}", nanos / unit.0, unit.1)
}

fn place(reading: &Reading) -> (&'static str, String) {
    let colour = match reading.place {
        Place::UserSpace => GREEN,
        Place::Kernel => RED,
        Place::Unknown => YELLOW,
    };
    let place = reading.place.name();
    match (reading.evidence, reading.entered, reading.reads) {
        (Evidence::Refused, ..) => {
            ("0", format!("refused, {}", reading.error.as_deref().unwrap_or_default()))
        }
        (Evidence::Likely, ..) => (YELLOW, format!("{place}, likely")),
        _ if reading.outside > Some(0) => (colour, format!("{place}, not by vDSO")),
        (_, Some(entered), Some(reads)) if entered != 0 && entered != reads => {
            (colour, format!("{place}, {entered} of {reads}"))
        }
        _ => (colour, place.into()),
    }
}
