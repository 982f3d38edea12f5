//! The report: a table, JSON, folded call chains.

#![allow(clippy::cast_precision_loss, reason = "shares need no more digits than f64 has")]

use std::cmp::Reverse;
use std::fmt::{self, Display};
use std::hint::black_box;
use std::time::Instant;

use serde::Serialize;

#[cfg(test)]
use crate::callers::count;
use crate::callers::{Findings, Group};
#[cfg(test)]
use crate::perf::{Event, Registers, Taken};
use crate::space::Frame;
use crate::{Options, Subject};
#[cfg(test)]
use std::sync::{Arc, atomic::AtomicUsize};

const COLUMNS: usize = 80;
/// The processes of a table, and the callers of each, if there is more than one name.
const MOST_ROWS: [usize; 2] = [20, 5];

/// How much the clock is read, as far as the method shows it.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Amounts {
    /// Samples in reads, or the reads that have a record.
    records: u64,
    percent: Option<f64>,
    percent_error: Option<f64>,
    reads_per_second: Option<f64>,
    reads: Option<u64>,
}

/// What was found out. `schema.json` describes the fields.
#[derive(Debug, Default, Serialize)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Report {
    format: u32,
    method: &'static str,
    pid: Option<u32>,
    name: String,
    pub(crate) sees_all: bool,
    has_vdso: bool,
    pub(crate) seconds: f64,
    pub(crate) cpu_seconds: f64,
    frequency: u32,
    samples: u64,
    lost: u64,
    pub(crate) swallowed: u64,
    read_ns: f64,
    trap_ns: Option<u64>,
    #[serde(skip)]
    pub(crate) counted: u64,
    #[serde(flatten)]
    whole: Amounts,
    processes: Vec<Process>,
    /// Whether other processes than `pid` had samples.
    #[serde(skip)]
    has_others: bool,
    #[serde(skip)]
    unread: u64,
    #[serde(skip)]
    folded: Vec<String>,
}

/// The processes of one name.
#[derive(Debug, Serialize)]
struct Process {
    name: String,
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
    #[serde(flatten)]
    amounts: Amounts,
}

/// What a read costs here: the cheapest of some series, because interrupts make reads slower.
fn read_ns() -> f64 {
    const READS: u32 = 1000;
    let series = || {
        let start = Instant::now();
        for _ in 0..READS {
            black_box(Instant::now());
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
        let method = if options.exact { "exact" } else { "sampled" };
        let frequency = options.frequency;
        Self { format: 1, method, pid, name, frequency, read_ns: read_ns(), trap_ns, ..Self::default() }
    }

    pub(crate) fn finish(&mut self, found: &Findings) {
        self.samples = found.samples;
        self.has_vdso = found.has_vdso;
        self.counted = self.counted.max(found.reads);
        // The kernel says how many were lost only with a later record.
        self.lost = if self.trap_ns.is_some() { self.counted - found.reads } else { found.lost };
        if let Some(name) = self.pid.and_then(|pid| found.names.get(&pid)) {
            self.name.clone_from(name);
        }
        self.unread = found.groups.values().map(|group| group.unread).sum();
        self.whole = self.amounts(found.reads, found.samples, self.unread);
        if self.trap_ns.is_some() {
            // A breakpoint is counted also if its record is lost.
            self.whole.reads = Some(self.counted);
            self.whole.reads_per_second = Some(self.counted as f64 / self.seconds);
        }
        let mut pids = found.groups.values().flat_map(|group| &group.pids);
        self.has_others = self.pid.is_none() || pids.any(|pid| Some(*pid) != self.pid);
        let processes = found.groups.iter().map(|(name, group)| self.process(name, group));
        self.processes = processes.filter(|one| one.amounts.records > 0 || found.reads == 0).collect();
        self.processes.sort_by(|a, b| (b.amounts.records, &a.name).cmp(&(a.amounts.records, &b.name)));
        self.folded = found.folded();
    }

    fn process(&self, name: &str, group: &Group) -> Process {
        let Group { pids, samples, unread, callers } = group;
        let amounts = self.amounts(callers.values().sum(), *samples, *unread);
        let callers = callers.iter().map(|((frame, called_by), records)| Row {
            frame: Frame::clone(frame),
            called_by: called_by.as_deref().cloned(),
            amounts: self.amounts(*records, *samples, *unread),
        });
        let mut callers: Vec<_> = callers.collect();
        let order = |row: &Row| (Reverse(row.amounts.records), row.frame.function.clone());
        callers.sort_by_cached_key(order);
        let pid = pids.iter().next().copied().filter(|_| pids.len() == 1);
        Process { name: name.into(), pid, count: pids.len(), samples: *samples, amounts, callers }
    }

    /// The CPU time that the samples stand for.
    fn sampled(&self) -> f64 {
        self.samples as f64 / f64::from(self.frequency)
    }

    /// Of records among the samples of a process. Any of the `unread` samples may be in a read.
    fn amounts(&self, records: u64, samples: u64, unread: u64) -> Amounts {
        if self.trap_ns.is_some() {
            // Which callers have the lost records is not known.
            let reads = (self.lost == 0).then_some(records);
            let reads_per_second = reads.map(|reads| reads as f64 / self.seconds);
            return Amounts { records, reads_per_second, reads, ..Amounts::default() };
        }
        // Samples of threads that live for less than a period do not stand for their CPU time.
        let cpu = self.cpu_seconds;
        if cpu == 0.0 || (self.sampled() - cpu).abs() > 0.2 * cpu {
            return Amounts { records, ..Amounts::default() };
        }
        let in_reads = cpu * records as f64 / self.samples.max(1) as f64;
        let share = |part: u64| part as f64 / samples.max(1) as f64;
        Amounts {
            records,
            percent: Some(100.0 * share(records)),
            percent_error: Some(100.0 * (error(records, samples) + share(unread)).min(1.0)),
            reads_per_second: (unread <= records).then(|| in_reads / self.seconds / self.read_ns * 1e9),
            reads: None,
        }
    }

    /// Returns a line for each call chain, `process;outer;inner;function NUMBER`, as flamegraph.pl,
    /// inferno and speedscope read it.
    #[must_use]
    pub fn folded(&self) -> &[String] {
        &self.folded
    }

    fn verdict(&self) -> String {
        let name = self.name.escape_debug();
        let others = if self.has_others { " and those that it started" } else { "" };
        let subject = match self.pid {
            Some(pid) => format!("process {pid} ({name}){others}"),
            None if self.name.is_empty() => "all processes".into(),
            None => format!("the processes of {name}"),
        };
        let (verb, its) = if self.has_others { ("", "their") } else { ("s", "its") };
        let (seconds, cpu, sampled) = (self.seconds, self.cpu_seconds, self.sampled());
        let Amounts { percent, percent_error, reads_per_second, reads, .. } = self.whole;
        match (reads, percent) {
            (Some(0), _) => format!("{subject} read no clock."),
            (Some(reads), _) => format!("{subject} read clocks {}.", times(reads)),
            (_, Some(percent)) => {
                let own = if self.sees_all { "CPU time" } else { "CPU time in user space" };
                let (share, error) = (number(percent), number(percent_error.unwrap_or(0.0)));
                let rate = reads_per_second.filter(|rate| *rate > 0.0).map(rounded);
                let rate = rate.map(|rate| format!(", about {rate} reads a second (right to a factor of 2)"));
                let rate = rate.unwrap_or_default();
                format!("{subject} spend{verb} {share} +-{error} % of {its} {own} in clock reads{rate}.")
            }
            _ if self.samples == 0 && cpu < 0.01 => {
                format!("{subject} used no CPU time in {seconds:.1} s.")
            }
            _ => {
                let advice = if self.lost != 0 {
                    "this program had too little CPU time to take the others out of the kernel's buffers: raise \
                     its priority (`sudo nice -n -10 vdso-who`)"
                } else if self.sees_all {
                    "use a longer --duration or a higher --frequency"
                } else {
                    "run it as root or with CAP_PERFMON, where setuid programs and threads that live for less than 2 ms \
                     are seen, too"
                };
                format!(
                    "{subject} used {cpu:.2} s of CPU time, but the samples stand for {sampled:.2} s, so no \
                     share is known: {advice}."
                )
            }
        }
    }

    /// What one should know of the figures.
    fn notes(&self) -> Vec<String> {
        let (samples, seconds, cpu) = (self.samples, self.seconds, self.cpu_seconds);
        let figures = match self.trap_ns {
            Some(trap) => format!(
                "{samples} records in {seconds:.1} s; a counted read costs {:.1} us.",
                trap as f64 / 1e3
            ),
            None => format!(
                "{samples} samples, {cpu:.2} s of CPU time in {seconds:.1} s. `% own`: of the process's CPU time; \
                 `+-`: with a confidence of 95 %; `reads/s`: that share at {:.0} ns a read, the cost here.",
                self.read_ns
            ),
        };
        let notes = [
            (!self.has_vdso).then(|| {
                "It has no vDSO, so each clock read is a system call: boot without vdso=0, and run it outside of \
                 gVisor and similar sandboxes."
                    .into()
            }),
            Some(figures),
            (self.swallowed != 0)
                .then(|| format!("The guard kept a SIGTRAP from the command {}.", times(self.swallowed))),
            (self.lost != 0).then(|| {
                let bound = if self.trap_ns.is_some() { ", so the reads of a caller are a lower bound" } else { "" };
                format!("{} records were lost, because the buffers were full{bound}.", self.lost)
            }),
            (self.unread * 100 > self.samples).then(|| {
                format!(
                    "{} samples are of processes that ended or whose memory may not be read, so `+-` is larger: run \
                     it as root with CAP_SYS_PTRACE, outside of any container.",
                    self.unread
                )
            }),
            (!self.sees_all && self.trap_ns.is_none())
                .then(|| "The time in system calls is not seen: run it as root or with CAP_PERFMON.".into()),
        ];
        notes.into_iter().flatten().collect()
    }

    /// The numbers before a caller, or the title of the table.
    fn cells(&self, amounts: Option<Amounts>) -> String {
        let cell = |value: Option<f64>| value.map_or("-".into(), number);
        match (amounts, self.trap_ns) {
            (None, Some(_)) => "      reads  ".into(),
            (None, None) => " samples   % own     +-   reads/s  ".into(),
            (Some(Amounts { reads: None, records, .. }), Some(_)) => {
                format!("{:>11}  ", format!(">= {records}"))
            }
            (Some(Amounts { reads: Some(reads), .. }), Some(_)) => format!("{reads:>11}  "),
            (Some(amounts), None) => {
                let [percent, error] = [amounts.percent, amounts.percent_error].map(cell);
                let rate = amounts.reads_per_second.map_or("-".into(), rounded);
                format!("{:>8} {percent:>7} {error:>6} {rate:>9}  ", amounts.records)
            }
        }
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", wrapped(&self.verdict()))?;
        let title = self.cells(None);
        let indent = title.len();
        let fit = |text: &str| shortened(text, COLUMNS - indent - 2);
        if !self.processes.is_empty() {
            writeln!(f, "\n{title}process, caller")?;
        }
        let [processes, rows] = if self.has_others { MOST_ROWS } else { [usize::MAX; 2] };
        for Process { name, pid, count, amounts, callers, .. } in self.processes.iter().take(processes) {
            let which = pid.map_or(format!("{count} processes"), |pid| pid.to_string());
            let name = fit(&format!("{} ({which})", name.escape_debug()));
            writeln!(f, "{}{name}", self.cells(Some(*amounts)))?;
            for Row { frame, called_by, amounts } in callers.iter().take(rows) {
                let line = frame.line.map_or(String::new(), |line| format!(":{line}"));
                let place = frame.file.as_ref().unwrap_or(&frame.module).to_owned() + &line;
                let caller = called_by.as_ref().map(|frame| format!("in {}", frame.function));
                let mut cells = self.cells(Some(*amounts));
                let texts = [frame.function.clone(), place].into_iter().chain(caller);
                for text in texts.filter(|text| !text.is_empty()) {
                    writeln!(f, "{cells}  {}", fit(&text.escape_debug().to_string()))?;
                    cells = " ".repeat(indent);
                }
            }
        }
        if self.processes.len() > processes || self.processes.iter().any(|one| one.callers.len() > rows) {
            writeln!(f, "{:indent$}... (--json has all)", "")?;
        }
        for note in self.notes() {
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
    let options = textwrap::Options::new(COLUMNS).word_splitter(textwrap::WordSplitter::NoHyphenation);
    textwrap::fill(&text, options).replace('\u{a0}', " ")
}

fn times(count: u64) -> String {
    if count == 1 { "once".into() } else { format!("{count} times") }
}

/// Three digits.
fn number(value: f64) -> String {
    let digits = [99.95, 9.995].iter().filter(|limit| value < **limit).count();
    format!("{value:.digits$}")
}

/// An estimate, to two digits.
fn rounded(value: f64) -> String {
    let unit = 10_f64.powf(value.max(1.0).log10().floor() - 1.0).max(1.0);
    format!("{:.0}", (value / unit).round() * unit)
}

/// The start and the end of a text.
fn shortened(text: &str, width: usize) -> String {
    let count = text.chars().count();
    let start = (width - 3) / 2;
    let end = text.chars().skip(count - (width - 3 - start).min(count));
    if count <= width {
        text.into()
    } else {
        text.chars().take(start).chain("...".chars()).chain(end).collect()
    }
}

/// No process has this number.
#[test]
fn a_process_that_cannot_be_read_has_no_share_that_looks_right() {
    let (is_64_bit, registers) = (true, Registers { pc: 1, ..Registers::default() });
    let (pid, in_kernel, number, stack, callchain) = ((1 << 22) + 1, false, None, vec![], vec![]);
    let taken = Taken { pid, in_kernel, is_64_bit, registers, number, stack, callchain };
    let options = Options::new(Subject::Host);
    let mut found = count(&options, None, [Event::Sample(Box::new(taken))], &AtomicUsize::new(1));
    let mut report = Report { seconds: 1.0, cpu_seconds: 0.002, ..Report::new(&options, None, None) };
    report.finish(&found);
    let text = report.to_string();
    assert!(text.contains("spend 0.00 +-100 % of") && text.contains("CAP_SYS_PTRACE"), "{text}");
    // Of two samples one is of a process of the same name that can be read.
    let group = found.groups.values_mut().next().unwrap();
    let caller = (Arc::new(Frame::unknown("caller".into(), "module")), None);
    (group.samples, found.samples, found.reads) = (2, 2, 1);
    group.callers.insert(caller, 1);
    report.cpu_seconds = 0.004;
    report.finish(&found);
    let Process { amounts, callers, .. } = &report.processes[0];
    for Amounts { percent, percent_error, .. } in [amounts, &callers[0].amounts] {
        assert!(*percent == Some(50.0) && percent_error.is_some_and(|error| error > 80.0), "{report}");
    }
}
