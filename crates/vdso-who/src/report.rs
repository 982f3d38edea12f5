//! The report: a table, JSON, a flame graph.

#![allow(clippy::cast_precision_loss, reason = "shares need no more digits than f64 has")]

use std::fmt::{self, Display, Write as _};
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use inferno::flamegraph;
use serde::Serialize;
use vdso_doctor::ProcessVdso;
use vdso_time::{ClockId, clock_gettime};

use crate::stack::Frame;
use crate::tally::{Caller, Tally};
use crate::trap::Trap;
use crate::{Options, Result};

const COLUMNS: usize = 80;
/// The columns before a caller.
const NUMBERS: usize = 30;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Method {
    #[default]
    Sampled,
    Slices,
    Exact,
}

/// How much the clock is read, as far as the method shows it.
#[derive(Debug, Default, Serialize)]
struct Amounts {
    reads: Option<u64>,
    reads_per_second: Option<f64>,
    cpu_percent: Option<f64>,
    process_percent: Option<f64>,
}

impl Amounts {
    fn share(&self, share: f64) -> Self {
        let part = |whole: Option<f64>| whole.map(|whole| whole * share);
        Self {
            reads: self.reads.map(|reads| (reads as f64 * share).round() as u64),
            reads_per_second: part(self.reads_per_second),
            cpu_percent: part(self.cpu_percent),
            process_percent: part(self.process_percent),
        }
    }
}

/// What was found out.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    format: u32,
    pid: u32,
    name: String,
    pub(crate) method: Method,
    /// Whether the time in system calls is seen.
    pub(crate) sees_kernel: bool,
    has_vdso: bool,
    /// Programs that the process executed meanwhile.
    pub(crate) programs: u32,
    #[serde(rename = "seconds", serialize_with = "seconds")]
    pub(crate) time: Duration,
    /// The CPU time of the process, with that of the breakpoints.
    #[serde(rename = "cpu_seconds", serialize_with = "seconds")]
    pub(crate) cpu: Duration,
    /// The CPU time during which reads were counted.
    #[serde(rename = "counted_cpu_seconds", serialize_with = "seconds")]
    pub(crate) counted: Duration,
    /// What the breakpoints counted.
    #[serde(skip)]
    pub(crate) counted_reads: u64,
    /// Records that the kernel took, and those that did not fit in its buffers.
    pub(crate) samples: u64,
    pub(crate) lost: u64,
    /// What a read costs in the doctor, if its vDSO is the same.
    read_ns: Option<f64>,
    pub(crate) trap_ns: Option<u64>,
    /// The share of the CPU time that the breakpoints took.
    overhead_percent: Option<f64>,
    /// How far the number of reads may be off. None if it is only known to be at least `reads`.
    error_percent: Option<f64>,
    #[serde(flatten)]
    whole: Amounts,
    callers: Vec<Row>,
    #[serde(skip)]
    pub(crate) folded: Vec<String>,
}

/// A caller.
#[derive(Debug, Serialize)]
struct Row {
    #[serde(flatten)]
    frame: Frame,
    /// Samples, or counted reads.
    records: u64,
    #[serde(flatten)]
    amounts: Amounts,
    close_percent: Option<f64>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference to the field")]
fn seconds<S: serde::Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(time.as_secs_f64())
}

/// The cheapest of some series, because interrupts make reads slower.
fn read_ns() -> f64 {
    const READS: u32 = 1000;
    let series = || {
        let start = Instant::now();
        for _ in 0..READS {
            let _ = std::hint::black_box(clock_gettime(ClockId::MONOTONIC));
        }
        start.elapsed()
    };
    (0..20).map(|_| series()).min().unwrap_or_default().as_secs_f64() * 1e9 / f64::from(READS)
}

impl Report {
    pub(crate) fn new(pid: u32, options: &Options, vdso: Option<&ProcessVdso>) -> Self {
        let name = crate::proc::text(pid, "comm").unwrap_or_default().trim_end().to_owned();
        let own = ProcessVdso::read(std::process::id()).ok();
        let is_own = own.zip(vdso).is_some_and(|(own, vdso)| own.bytes == vdso.bytes);
        let method = match options {
            Options { exact: true, .. } => Method::Exact,
            Options { count: true, .. } => Method::Slices,
            _ => Method::Sampled,
        };
        Self {
            format: 1,
            pid,
            name,
            method,
            has_vdso: vdso.is_some(),
            read_ns: is_own.then(read_ns),
            ..Self::default()
        }
    }

    /// Scales what was counted. A thread's reads follow its own CPU time, without the time that the
    /// breakpoints took, whether it computes or waits. If those took nearly all of it, what remains
    /// is unknown, and the reads are scaled by the whole time: there were at least so many.
    pub(crate) fn finish(&mut self, tally: &Tally, trap: Trap) {
        let time = self.time.as_secs_f64().max(1e-9);
        let seen = tally.reads.max(1) as f64;
        // Lost records are spread over the callers.
        let reads = match self.method {
            Method::Sampled => tally.reads,
            _ => self.counted_reads.max(tally.reads),
        };
        if self.method != Method::Sampled {
            // The kernel says how many were lost only with a later record.
            self.lost = reads - tally.reads;
        }
        let reads = reads as f64;
        let (cpu, counted) = (self.cpu.as_secs_f64(), self.counted.as_secs_f64().max(1e-9));
        let (traps, spread) = (reads * trap.ns as f64 / 1e9, reads * trap.spread as f64 / 1e9);
        let (own, own_counted) = ((cpu - traps).max(1e-9), counted - traps);
        let is_known = spread < own_counted / 2.0;
        let all = match self.method {
            Method::Sampled => 0.0,
            Method::Exact => reads,
            Method::Slices if is_known => reads * own / own_counted,
            Method::Slices => reads * own / counted,
        };
        if self.method == Method::Sampled {
            let process_percent = 100.0 * reads / self.samples.max(1) as f64;
            self.whole.process_percent = Some(process_percent);
            self.whole.cpu_percent = Some(process_percent * cpu / time);
        } else {
            self.overhead_percent = Some(100.0 * traps / time);
            self.trap_ns = Some(trap.ns);
            self.error_percent = match self.method {
                Method::Exact => Some(0.0),
                _ => is_known.then(|| 100.0 * (spread / own_counted + 1.0 / reads.max(1.0).sqrt())),
            };
            // A program that stops at each read spends another share of its time in reads.
            let read_ns = self.error_percent.and(self.read_ns).filter(|_| self.method == Method::Slices);
            self.whole = Amounts {
                reads: Some(all.round() as u64),
                reads_per_second: Some(all / time),
                cpu_percent: read_ns.map(|ns| all / time * ns / 1e7),
                process_percent: read_ns.map(|ns| (all * ns / 1e7 / own).min(100.0)),
            };
        }
        let row = |caller: &Caller| Row {
            frame: caller.frame.clone(),
            records: caller.reads,
            amounts: self.whole.share(caller.reads as f64 / seen),
            close_percent: self.trap_ns.map(|_| 100.0 * caller.soon as f64 / caller.reads.max(1) as f64),
        };
        self.callers = tally.callers.iter().map(row).collect();
        self.callers.sort_by_key(|row| std::cmp::Reverse(row.records));
        self.folded = tally.folded();
    }

    /// Writes a flame graph.
    ///
    /// # Errors
    /// If there is nothing to draw, or the file cannot be written.
    pub fn draw(&self, path: &Path) -> Result<()> {
        let draw = || -> Result<()> {
            let mut settings = flamegraph::Options::default();
            settings.title = format!("Clock reads of {} ({})", self.name.escape_debug(), self.pid);
            settings.count_name = if self.method == Method::Sampled { "samples" } else { "reads" }.into();
            let lines = self.folded.iter().map(String::as_str);
            Ok(flamegraph::from_lines(&mut settings, lines, File::create(path)?)?)
        };
        if self.folded.is_empty() {
            return Err(format!("no clock read was seen, so {} was not written", path.display()).into());
        }
        draw().map_err(|error| format!("cannot write {}: {error}", path.display()).into())
    }

    /// Returns whether reads were counted by breakpoints.
    #[must_use]
    pub fn counts(&self) -> bool {
        self.method != Method::Sampled
    }

    /// The verdict, and what one should know of it.
    fn notes(&self) -> (String, Vec<String>) {
        let process = format!("process {} ({})", self.pid, self.name.escape_debug());
        let seconds = self.time.as_secs_f64();
        let own = if self.sees_kernel { "CPU time" } else { "CPU time in user space" };
        let share = number(self.whole.process_percent.unwrap_or(0.0));
        let verdict = match self.whole.reads {
            None if self.samples == 0 && self.cpu < Duration::from_millis(10) => {
                format!("{process} used no CPU time in {seconds:.1} s.")
            }
            None if self.samples == 0 => format!(
                "{process} used {:.2} s of CPU time, but no thread enough for a sample: use a longer --duration, a \
                 higher --frequency, or --count.",
                self.cpu.as_secs_f64()
            ),
            None => format!("{process} spends {share} % of its {own} in clock reads."),
            Some(0) => format!("{process} read no clock while reads were counted."),
            Some(reads) if self.method == Method::Exact => {
                let amount = if self.programs == 0 { "" } else { "at least " };
                format!("{process} read clocks {amount}{reads} times.")
            }
            Some(_) => {
                let amount = if self.error_percent.is_some() { "about" } else { "at least" };
                let rate = number(self.whole.reads_per_second.unwrap_or(0.0));
                format!("{process} reads clocks {amount} {rate} times a second.")
            }
        };
        let mut notes = Vec::new();
        if !self.has_vdso {
            notes.push("it has no vDSO, so each clock read is a system call: boot without vdso=0, and run it outside of gVisor and similar sandboxes".into());
        }
        match self.trap_ns {
            None => notes.push(format!(
                "{} samples in {seconds:.1} s; they show times, not numbers of reads, which --count shows; `% own` \
                 is the share of the process's {own}",
                self.samples
            )),
            Some(trap) => {
                let overhead = number(self.overhead_percent.unwrap_or(0.0));
                let records = self.counted_reads;
                let mut note = format!(
                    "{records} reads were counted in {seconds:.1} s; each cost {:.1} us, which is {overhead} % of a CPU",
                    trap as f64 / 1e3
                );
                if self.method == Method::Slices {
                    let slices =
                        number(100.0 * self.counted.as_secs_f64() / self.cpu.max(self.counted).as_secs_f64().max(1e-9));
                    let _ = write!(note, "; scaled from {slices} % of the CPU time");
                    let error = match self.error_percent {
                        Some(error) if error > 30.0 => {
                            format!(", +-{} %: use --exact, or a longer --duration", number(error))
                        }
                        Some(error) => format!(", +-{} %", number(error)),
                        None => {
                            ". The reads are too close to each other to be counted so: without --count, the \
                                 report shows their share of the CPU time"
                                .into()
                        }
                    };
                    note.push_str(&error);
                }
                notes.push(note);
                notes.push("`<1us`: the share of reads that came less than 1 us after the one before of the same thread (the breakpoint's time is subtracted): candidates for one read instead of two".into());
            }
        }
        if let (Some(ns), Some(_)) =
            (self.read_ns, self.whole.cpu_percent.filter(|_| self.whole.reads.is_some()))
        {
            notes.push(format!("% CPU: {ns:.0} ns a read, measured in the doctor"));
        }
        if self.lost != 0 {
            notes.push(format!("{} records were lost, because the buffers were full", self.lost));
        }
        if !self.sees_kernel && self.whole.reads.is_none() {
            notes.push("the time in system calls is not seen: run it as root or with CAP_PERFMON".into());
        }
        if self.programs != 0 {
            notes.push(format!(
                "it executed another program {} times; reads in the first milliseconds of each are missing",
                self.programs
            ));
        }
        (verdict, notes)
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (verdict, notes) = self.notes();
        writeln!(f, "{}", wrapped(&verdict))?;
        if !self.callers.is_empty() {
            let titles = match self.method {
                Method::Sampled => ["samples", "% CPU", "% own"],
                Method::Slices => ["reads/s", "% CPU", "<1us"],
                Method::Exact => ["reads", "", "<1us"],
            };
            writeln!(f, "\n{:>11} {:>8} {:>7}  caller", titles[0], titles[1], titles[2])?;
        }
        for Row { frame, records, amounts, close_percent } in &self.callers {
            let first = match amounts.reads_per_second {
                Some(rate) if self.method == Method::Slices => number(rate),
                _ => amounts.reads.unwrap_or(*records).to_string(),
            };
            let [cpu, last] = [amounts.cpu_percent, close_percent.or(amounts.process_percent)];
            let [cpu, last] = [cpu, last].map(|value| value.map_or("-".into(), number));
            let cpu = if self.method == Method::Exact { String::new() } else { cpu };
            let function = frame.function.escape_debug().to_string();
            let width = COLUMNS - NUMBERS;
            writeln!(f, "{first:>11} {cpu:>8} {last:>7}  {}", shortened(&function, width, true))?;
            let line = frame.line.map_or(String::new(), |line| format!(":{line}"));
            let place = frame.file.as_ref().unwrap_or(&frame.module).escape_debug().to_string() + &line;
            if !place.is_empty() {
                writeln!(f, "{:NUMBERS$}{}", "", shortened(&place, width, false))?;
            }
        }
        for note in notes {
            write!(f, "\n{}", wrapped(&note))?;
        }
        writeln!(f)
    }
}

/// Lines of 80 columns. A command, in backticks, stays in one line.
fn wrapped(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let parts =
        parts.map(|(index, part)| if index % 2 == 1 { part.replace(' ', "\u{a0}") } else { part.into() });
    let text = parts.collect::<Vec<_>>().join("`");
    textwrap::fill(&text, COLUMNS).replace('\u{a0}', " ")
}

/// Three digits.
fn number(value: f64) -> String {
    match value {
        value if value >= 99.95 => format!("{value:.0}"),
        value if value >= 9.995 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// The start or the end of a text.
fn shortened(text: &str, width: usize, keeps_start: bool) -> String {
    let count = text.chars().count();
    if count <= width {
        return text.to_owned();
    }
    if keeps_start {
        text.chars().take(width - 3).chain("...".chars()).collect()
    } else {
        "...".chars().chain(text.chars().skip(count + 3 - width)).collect()
    }
}
