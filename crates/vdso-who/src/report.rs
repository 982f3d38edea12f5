//! The report: a table, JSON, folded call chains.

#![allow(clippy::cast_precision_loss, reason = "shares need no more digits than f64 has")]

use std::fmt::{self, Display};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::stack::Frame;
use crate::tally::{Caller, Group, Tally};
use crate::{Options, Result, Subject};

const COLUMNS: usize = 80;
/// The callers and the processes that a table has, if there is more than one process.
const MOST_ROWS: [usize; 2] = [5, 20];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Method {
    #[default]
    Sampled,
    Exact,
}

/// How much the clock is read, as far as the method shows it.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Amounts {
    /// The share of the process's CPU time, and its error with a confidence of 95 %.
    percent: Option<f64>,
    percent_error: Option<f64>,
    /// Of samples an estimate, to a factor of 2.
    reads_per_second: Option<f64>,
    /// Counted.
    reads: Option<u64>,
}

/// What was found out.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    format: u32,
    method: Method,
    pid: Option<u32>,
    /// What is watched: a process's name, a cgroup's folder, or nothing.
    name: String,
    /// Whether the time in system calls is seen.
    pub(crate) sees_kernel: bool,
    /// Whether threads that live for less than a period are seen.
    pub(crate) sees_every_thread: bool,
    has_vdso: bool,
    /// Programs that the process executed meanwhile.
    programs: u32,
    #[serde(rename = "seconds", serialize_with = "seconds")]
    pub(crate) time: Duration,
    #[serde(rename = "cpu_seconds", serialize_with = "seconds")]
    pub(crate) cpu: Duration,
    frequency: u32,
    samples: u64,
    /// Records that did not fit in the kernel's buffers.
    lost: u64,
    /// Signals of breakpoints that were kept from the command.
    pub(crate) swallowed: u64,
    /// What a read costs in this program, and what a breakpoint costs.
    read_ns: f64,
    trap_ns: Option<u64>,
    #[serde(skip)]
    pub(crate) counted: u64,
    #[serde(flatten)]
    whole: Amounts,
    processes: Vec<Process>,
    /// How many names the processes have.
    #[serde(skip)]
    groups: usize,
    #[serde(skip)]
    folded: Vec<String>,
}

/// The processes of one name.
#[derive(Debug, Serialize)]
struct Process {
    name: String,
    /// If it is one process.
    pid: Option<u32>,
    count: usize,
    samples: u64,
    #[serde(flatten)]
    amounts: Amounts,
    callers: Vec<Row>,
}

/// A caller.
#[derive(Debug, Serialize)]
struct Row {
    #[serde(flatten)]
    frame: Frame,
    called_by: Option<Frame>,
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
            std::hint::black_box(Instant::now());
        }
        start.elapsed()
    };
    (0..20).map(|_| series()).min().unwrap_or_default().as_secs_f64() * 1e9 / f64::from(READS)
}

/// Half of the interval of Wilson for a share, with a confidence of 95 %.
fn error(part: u64, whole: u64) -> f64 {
    const Z: f64 = 1.96;
    let whole = whole.max(1) as f64;
    let share = part as f64 / whole;
    Z * (share * (1.0 - share) / whole + (Z / (2.0 * whole)).powi(2)).sqrt() / (1.0 + Z * Z / whole)
}

impl Report {
    pub(crate) fn new(options: &Options, pid: Option<u32>, trap_ns: Option<u64>) -> Self {
        let name = match &options.subject {
            Subject::Cgroup(path) => path.display().to_string(),
            _ => String::new(),
        };
        let method = if options.exact { Method::Exact } else { Method::Sampled };
        let frequency = options.frequency;
        Self { format: 1, method, pid, name, frequency, read_ns: read_ns(), trap_ns, ..Self::default() }
    }

    pub(crate) fn finish(&mut self, tally: &Tally) {
        self.samples = tally.samples;
        self.programs = tally.programs;
        self.has_vdso = tally.has_vdso();
        self.counted = self.counted.max(tally.reads);
        // The kernel says how many were lost only with a later record.
        self.lost = if self.method == Method::Exact { self.counted - tally.reads } else { tally.lost };
        if let (Some(_), Some(group)) = (self.pid, tally.groups.first()) {
            self.name.clone_from(&group.name);
        }
        self.whole = self.amounts(tally.reads, tally.samples, tally);
        let groups = tally.groups.iter().filter(|group| group.reads > 0 || tally.reads == 0);
        self.processes = groups.map(|group| self.process(group, tally)).collect();
        self.processes.sort_by_key(|process| {
            let reads: u64 = process.callers.iter().map(|row| row.records).sum();
            (process.pid != self.pid, std::cmp::Reverse(reads))
        });
        self.groups = tally.groups.len();
        self.folded = tally.folded();
    }

    fn process(&self, group: &Group, tally: &Tally) -> Process {
        let row = |caller: &Caller| Row {
            frame: caller.frame.clone(),
            called_by: caller.called_by.clone(),
            records: caller.reads,
            amounts: self.amounts(caller.reads, group.samples, tally),
            close_percent: self.trap_ns.map(|_| 100.0 * caller.soon as f64 / caller.reads.max(1) as f64),
        };
        let mut callers: Vec<_> = group.callers.iter().map(row).collect();
        callers.sort_by_key(|row| std::cmp::Reverse(row.records));
        Process {
            name: group.name.clone(),
            pid: group.pids.iter().next().copied().filter(|_| group.pids.len() == 1),
            count: group.pids.len(),
            samples: group.samples,
            amounts: self.amounts(group.reads, group.samples, tally),
            callers,
        }
    }

    /// Whether the samples stand for the CPU time, within 20 %. Those of threads that live for less
    /// than a period do not.
    fn agrees(&self) -> bool {
        let (sampled, cpu) = (self.sampled(), self.cpu.as_secs_f64());
        cpu > 0.0 && (sampled - cpu).abs() <= 0.2 * cpu
    }

    fn sampled(&self) -> f64 {
        self.samples as f64 / f64::from(self.frequency)
    }

    /// `reads` of the `samples` of a process.
    fn amounts(&self, reads: u64, samples: u64, tally: &Tally) -> Amounts {
        let seconds = self.time.as_secs_f64().max(1e-9);
        if self.method == Method::Exact {
            // Lost records are spread over the callers.
            let reads = self.counted as f64 * reads as f64 / tally.reads.max(1) as f64;
            let (reads_per_second, reads) = (Some(reads / seconds), Some(reads.round() as u64));
            return Amounts { reads_per_second, reads, ..Amounts::default() };
        }
        if !self.agrees() {
            return Amounts::default();
        }
        let percent = 100.0 * reads as f64 / samples.max(1) as f64;
        let in_reads = self.cpu.as_secs_f64() * reads as f64 / tally.samples.max(1) as f64;
        Amounts {
            percent: Some(percent),
            percent_error: Some(100.0 * error(reads, samples)),
            reads_per_second: Some(in_reads / seconds / self.read_ns * 1e9),
            reads: None,
        }
    }

    /// Returns a line for each call chain, `process;outer;inner;function NUMBER`, as flamegraph.pl,
    /// inferno and speedscope read it.
    #[must_use]
    pub fn folded(&self) -> &[String] {
        &self.folded
    }

    /// The verdict, and what one should know of it.
    fn notes(&self) -> (String, Vec<String>) {
        let more = self.groups > 1;
        let subject = match (self.pid, &*self.name) {
            (Some(pid), name) if more => {
                format!("process {pid} ({}) and those that it started", name.escape_debug())
            }
            (Some(pid), name) => format!("process {pid} ({})", name.escape_debug()),
            (None, "") => "all processes".into(),
            (None, name) => format!("the processes of {}", name.escape_debug()),
        };
        let (verb, plural) = if more || self.pid.is_none() { ("", "their") } else { ("s", "its") };
        let seconds = self.time.as_secs_f64();
        let cpu = self.cpu.as_secs_f64();
        let own = if self.sees_kernel { "CPU time" } else { "CPU time in user space" };
        let Amounts { percent, percent_error, reads_per_second, reads } = self.whole;
        let verdict = match (reads, percent) {
            (Some(0), _) => format!("{subject} read no clock."),
            (Some(reads), _) => format!("{subject} read clocks {}.", times(reads)),
            (None, None) if self.samples == 0 && self.cpu < Duration::from_millis(10) => {
                format!("{subject} used no CPU time in {seconds:.1} s.")
            }
            (None, None) => {
                let advice = if self.lost != 0 {
                    "this program had too little CPU time to take the others out of the kernel's buffers: raise its \
                     priority (`nice -n -10 vdso-who`)"
                } else if self.sees_every_thread {
                    "use a longer --duration or a higher --frequency"
                } else {
                    "run it as root or with CAP_PERFMON, where threads that live for less than 2 ms are seen"
                };
                format!(
                    "{subject} used {cpu:.2} s of CPU time, but the samples stand for {:.2} s, so no share is \
                     known: {advice}.",
                    self.sampled()
                )
            }
            (None, Some(percent)) => {
                let (share, error) = (number(percent), number(percent_error.unwrap_or(0.0)));
                let rate = rounded(reads_per_second.unwrap_or(0.0));
                let share =
                    format!("{subject} spend{verb} {share} +-{error} % of {plural} {own} in clock reads");
                let is_read = percent > 0.0;
                let rate = if is_read {
                    format!(", about {rate} reads a second (a factor of 2)")
                } else {
                    String::new()
                };
                format!("{share}{rate}.")
            }
        };
        let mut notes = Vec::new();
        if !self.has_vdso {
            notes.push("It has no vDSO, so each clock read is a system call: boot without vdso=0, and run it outside of gVisor and similar sandboxes.".to_owned());
        }
        if let Some(trap) = self.trap_ns {
            notes.push(format!(
                "{} records in {seconds:.1} s; a counted read costs {:.1} us. `<1us`: the share of reads that came \
                 less than 1 us after the one before of the same thread, without the breakpoint's time: candidates \
                 for one read instead of two.",
                self.samples,
                trap as f64 / 1e3
            ));
        } else {
            notes.push(format!(
                "{} samples, {cpu:.2} s of CPU time in {seconds:.1} s. `% own`: of the process's {own}; `+-`: with a \
                 confidence of 95 %; `reads/s`: that share at {:.0} ns a read, the cost on this machine.",
                self.samples, self.read_ns
            ));
        }
        if self.swallowed != 0 {
            notes.push(format!("The guard kept a SIGTRAP from the command {}.", times(self.swallowed)));
        }
        if self.lost != 0 {
            notes.push(format!("{} records were lost, because the buffers were full.", self.lost));
        }
        if !self.sees_kernel && self.trap_ns.is_none() {
            notes.push("The time in system calls is not seen: run it as root or with CAP_PERFMON.".into());
        }
        if self.programs != 0 {
            notes.push(format!("It executed another program {}.", times(self.programs.into())));
        }
        (verdict, notes)
    }

    /// The numbers before a caller.
    fn cells(&self, amounts: Amounts, records: u64, close: Option<f64>) -> String {
        let cell = |value: Option<f64>| value.map_or("-".into(), number);
        if self.method == Method::Exact {
            return format!("{:>11} {:>7}  ", amounts.reads.unwrap_or(0), cell(close));
        }
        let [percent, error] = [amounts.percent, amounts.percent_error].map(cell);
        let rate = amounts.reads_per_second.map_or("-".into(), rounded);
        format!("{records:>8} {percent:>7} {error:>6} {rate:>9}  ")
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (verdict, notes) = self.notes();
        writeln!(f, "{}", wrapped(&verdict))?;
        let title = match self.method {
            Method::Exact => "      reads    <1us  ",
            Method::Sampled => " samples   % own     +-   reads/s  ",
        };
        let (indent, width) = (title.len(), COLUMNS - title.len());
        let is_one = self.groups == 1 && self.pid.is_some();
        if self.processes.iter().any(|process| !process.callers.is_empty()) {
            writeln!(f, "\n{title}{}", if is_one { "caller" } else { "process, caller" })?;
        }
        let [callers, processes] = if is_one { [usize::MAX; 2] } else { MOST_ROWS };
        for Process { name, pid, count, amounts, callers: rows, .. } in self.processes.iter().take(processes)
        {
            let margin = if is_one { "" } else { "  " };
            if !is_one {
                let records = rows.iter().map(|row| row.records).sum();
                let which = pid.map_or(format!("{count} processes"), |pid| pid.to_string());
                let name = shortened(&format!("{} ({which})", name.escape_debug()), width, true);
                writeln!(f, "{}{name}", self.cells(*amounts, records, None))?;
            }
            for Row { frame, called_by, records, amounts, close_percent } in rows.iter().take(callers) {
                let function = frame.function.escape_debug().to_string();
                let numbers = self.cells(*amounts, *records, *close_percent);
                writeln!(f, "{numbers}{margin}{}", shortened(&function, width - margin.len(), true))?;
                let line = frame.line.map_or(String::new(), |line| format!(":{line}"));
                let place = frame.file.as_ref().unwrap_or(&frame.module).escape_debug().to_string() + &line;
                let caller = called_by.as_ref().map(|frame| format!("in {}", frame.function.escape_debug()));
                for place in [place].into_iter().chain(caller).filter(|place| !place.is_empty()) {
                    writeln!(f, "{:indent$}{margin}{}", "", shortened(&place, width - margin.len(), false))?;
                }
            }
        }
        let hidden = self.processes.len().saturating_sub(processes)
            + self.processes.iter().filter(|process| process.callers.len() > callers).count();
        if hidden > 0 {
            writeln!(f, "{:indent$}... (--json has all)", "")?;
        }
        for note in notes {
            write!(f, "\n{}", wrapped(&note))?;
        }
        writeln!(f)
    }
}

/// Lines of 80 columns. A command, in backticks, stays in one line.
#[doc(hidden)]
#[must_use]
pub fn wrapped(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(index, part)| match index % 2 {
        1 if part.len() < COLUMNS / 2 => part.replace(' ', "\u{a0}"),
        _ => part.into(),
    });
    let text = parts.collect::<Vec<_>>().join("`");
    textwrap::fill(&text, COLUMNS).replace('\u{a0}', " ")
}

fn times(count: u64) -> String {
    if count == 1 { "once".into() } else { format!("{count} times") }
}

/// Three digits.
fn number(value: f64) -> String {
    match value {
        value if value >= 99.95 => format!("{value:.0}"),
        value if value >= 9.995 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// An estimate, to two digits.
fn rounded(value: f64) -> String {
    let unit = 10_f64.powf(value.max(1.0).log10().floor() - 1.0).max(1.0);
    format!("{:.0}", (value / unit).round() * unit)
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
