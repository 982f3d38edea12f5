//! The report: a table, JSON, folded call chains.

#![allow(
    clippy::cast_precision_loss,
    reason = "shares need no more digits than f64 has"
)]

use std::cmp::Reverse;
use std::hint::black_box;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::arguments::Arguments;
use crate::callers::{Findings, Group, Key};
use crate::flame_graph;
use crate::space::Frame;
use crate::text::{estimate, number, shortened, times, wrapped};

/// The processes of a table, and the callers of each, if there is more than one name.
const MOST_ROWS: [usize; 2] = [20, 5];
/// The processes of a name that have a row each.
const MOST_OF_NAME: usize = 7;

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
#[derive(Clone, Debug, Default, Serialize)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Report {
    format: u32,
    method: &'static str,
    pid: Option<u32>,
    name: String,
    pub(crate) sees_all: bool,
    has_vdso: bool,
    pub(crate) seconds: f64,
    cpu_seconds: f64,
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
    /// Whether processes of one name share a row if there are many, because nothing else was asked
    /// for. A server can start a worker for each query.
    #[serde(skip)]
    merges: bool,
    /// Whether other processes than `pid` had samples.
    #[serde(skip)]
    has_others: bool,
    #[serde(skip)]
    unread: u64,
    /// A line for each call chain, `process;outer;inner;function NUMBER`, as flamegraph.pl, inferno
    /// and speedscope read it.
    #[serde(skip)]
    pub(crate) folded: Vec<String>,
}

/// The processes of a row.
#[derive(Clone, Debug, Serialize)]
struct Process {
    name: String,
    unit: Option<String>,
    pid: Option<u32>,
    count: usize,
    samples: u64,
    #[serde(flatten)]
    amounts: Amounts,
    callers: Vec<Row>,
}

/// A caller.
#[derive(Clone, Debug, Serialize)]
struct Row {
    #[serde(flatten)]
    frame: Frame,
    called_by: Option<Frame>,
    #[serde(flatten)]
    amounts: Amounts,
}

/// Nanoseconds. In user space a read takes less, and a system call takes more.
const SLOW_NS: f64 = 100.0;

/// Seconds by which the time in user space of a process can be wrong: two ticks.
const PRECISION: f64 = 0.02;

/// Returns what a read costs here, by the cheapest of some series, because interrupts make reads
/// slower.
fn read_ns() -> f64 {
    const READS: u32 = 1000;
    let series = || {
        let start = Instant::now();
        for _ in 0..READS {
            black_box(Instant::now());
        }
        start.elapsed()
    };
    (0..20)
        .map(|_| series())
        .min()
        .unwrap_or_default()
        .as_secs_f64()
        * 1e9
        / f64::from(READS)
}

/// Returns how far a share can be from the true one, with a confidence of 95 %: the distance to the
/// farther end of Wilson's interval, which is that towards 50 %.
fn error(part: u64, whole: u64) -> f64 {
    const Z: f64 = 1.96;
    let whole = whole.max(1) as f64;
    let share = part as f64 / whole;
    let half = Z * (share * (1.0 - share) / whole + (Z / (2.0 * whole)).powi(2)).sqrt();
    let center = share + Z * Z / (2.0 * whole);
    half / (1.0 + Z * Z / whole) + (center / (1.0 + Z * Z / whole) - share).abs()
}

impl Report {
    pub(crate) fn new(arguments: &Arguments, pid: Option<u32>, trap_ns: Option<u64>) -> Self {
        let name = arguments
            .cgroup
            .as_ref()
            .map_or(String::new(), |path| path.display().to_string());
        let method = if arguments.exact { "exact" } else { "sampled" };
        let (frequency, merges) = (arguments.frequency, arguments.group_by.is_none());
        Self {
            format: 1,
            method,
            pid,
            name,
            frequency,
            merges,
            read_ns: read_ns(),
            trap_ns,
            ..Self::default()
        }
    }

    /// Returns the report of a part of the measurement, before it is finished.
    pub(crate) fn of_part(&self, duration: Duration, cpu: Duration) -> Self {
        Self {
            seconds: duration.as_secs_f64(),
            cpu_seconds: cpu.as_secs_f64(),
            ..self.clone()
        }
    }

    pub(crate) fn finish(&mut self, mut found: Findings) {
        if self.merges {
            found.merge(MOST_OF_NAME);
        }
        self.samples = found.samples;
        self.has_vdso = found.has_vdso;
        self.counted = self.counted.max(found.reads);
        // The kernel says how many were lost only with a later record.
        self.lost = if self.trap_ns.is_some() {
            self.counted - found.reads
        } else {
            found.lost
        };
        if let Some(name) = found.name.take() {
            self.name = name;
        }
        self.unread = found.groups.values().map(|group| group.unread).sum();
        let in_kernel = found
            .groups
            .values()
            .flat_map(|group| group.in_kernel.values())
            .sum();
        self.whole = self.amounts([found.reads, in_kernel], found.samples, self.unread);
        if self.trap_ns.is_some() {
            // A breakpoint is counted also if its record is lost.
            self.whole.reads = Some(self.counted);
            self.whole.reads_per_second = Some(self.counted as f64 / self.seconds);
        }
        let mut pids = found.groups.values().flat_map(|group| &group.pids);
        self.has_others = self.pid.is_none() || pids.any(|pid| Some(*pid) != self.pid);
        let processes = found
            .groups
            .iter()
            .map(|(key, group)| self.process(key, group));
        self.processes = processes
            .filter(|one| one.amounts.records > 0 || found.reads == 0)
            .collect();
        self.processes.sort_by(|a, b| {
            (b.amounts.records, &a.name, a.pid).cmp(&(a.amounts.records, &b.name, b.pid))
        });
        self.folded = found.folded();
    }

    fn process(&self, key: &Key, group: &Group) -> Process {
        let Group {
            pids,
            samples,
            unread,
            callers,
            in_kernel,
        } = group;
        let all = [callers, in_kernel].map(|records| records.values().sum());
        let amounts = self.amounts(all, *samples, *unread);
        let callers = callers.iter().map(|(caller, records)| Row {
            frame: Frame::clone(&caller.first),
            called_by: caller.next.as_deref().cloned(),
            amounts: {
                let in_kernel = in_kernel.get(caller).copied().unwrap_or(0);
                self.amounts([*records, in_kernel], *samples, *unread)
            },
        });
        let mut callers: Vec<_> = callers.collect();
        let order = |row: &Row| (Reverse(row.amounts.records), row.frame.function.clone());
        callers.sort_by_cached_key(order);
        let pid = pids.iter().next().copied().filter(|_| pids.len() == 1);
        let Key { name, unit, .. } = key.clone();
        Process {
            name,
            unit,
            pid,
            count: pids.len(),
            samples: *samples,
            amounts,
            callers,
        }
    }

    /// Returns the figures of `records` among the samples of a process, given those of them that
    /// were in the kernel. Any of the `unread` samples may be in a read.
    ///
    /// If the vDSO reads this machine's clock in user space, `read_ns` is what that costs. A read
    /// of another clock in the kernel can cost 30 times as much, so there its rate is not known.
    fn amounts(&self, [records, in_kernel]: [u64; 2], samples: u64, unread: u64) -> Amounts {
        if self.trap_ns.is_some() {
            // Which callers have the lost records is not known.
            let reads = (self.lost == 0).then_some(records);
            let reads_per_second = reads.map(|reads| reads as f64 / self.seconds);
            return Amounts {
                records,
                reads_per_second,
                reads,
                ..Amounts::default()
            };
        }
        if !self.has_share() {
            return Amounts {
                records,
                ..Amounts::default()
            };
        }
        let in_reads = self.cpu_seconds * records as f64 / self.samples as f64;
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        // Any of the records that were lost, too.
        let unknown = share(unread, samples) + share(self.lost, self.samples + self.lost);
        Amounts {
            records,
            percent: Some(100.0 * share(records, samples)),
            percent_error: Some(100.0 * (error(records, samples) + unknown).min(1.0)),
            reads_per_second: (self.cpu_seconds > 0.0
                && unread <= records
                && (in_kernel <= records / 2 || self.read_ns > SLOW_NS))
                .then(|| in_reads / self.seconds / self.read_ns * 1e9),
            reads: None,
        }
    }

    /// Returns the call chains as a flame graph, for a browser: the reads in the vDSO are green,
    /// those by a system call red.
    ///
    /// # Errors
    /// If there is no clock read, or if this program was built without the feature `svg`.
    pub(crate) fn svg(&self) -> std::io::Result<String> {
        let count_name = if self.trap_ns.is_some() {
            "reads"
        } else {
            "samples"
        };
        let verdict = self.verdict();
        // The rate is an estimate, and the title one line.
        let title = verdict.split(", about ").next().unwrap_or_default();
        flame_graph::of(&self.folded, title.to_owned(), count_name)
    }

    /// Returns whether the samples stand for the CPU time. Events of each CPU see all of it. Those
    /// of a thread miss threads that live for less than a period: then the samples are fewer by
    /// more than three standard deviations, the 5 % by which the kernel's clocks differ, and the
    /// precision of the time in user space.
    fn has_share(&self) -> bool {
        let expected = self.cpu_seconds * f64::from(self.frequency);
        let missing = (expected - self.samples as f64).abs();
        let most = 3.0 * expected.sqrt() + 0.05 * expected + PRECISION * f64::from(self.frequency);
        self.samples != 0 && (self.sees_all || missing <= most)
    }

    fn verdict(&self) -> String {
        let name = self.name.escape_debug();
        let others = if self.has_others {
            " and those that it started"
        } else {
            ""
        };
        let subject = match self.pid {
            Some(pid) => format!("process {pid} ({name}){others}"),
            None if self.name.is_empty() => "all processes".into(),
            None => format!("the processes of {name}"),
        };
        let (verb, its) = if self.has_others {
            ("", "their")
        } else {
            ("s", "its")
        };
        let (seconds, cpu) = (self.seconds, self.cpu_seconds);
        let sampled = self.samples as f64 / f64::from(self.frequency);
        let Amounts {
            percent,
            percent_error,
            reads_per_second,
            reads,
            ..
        } = self.whole;
        match (reads, percent) {
            (Some(0), _) => format!("{subject} read no clock."),
            (Some(reads), _) => format!("{subject} read clocks {}.", times(reads)),
            (_, Some(percent)) => {
                let own = if self.sees_all {
                    "CPU time"
                } else {
                    "CPU time in user space"
                };
                let (share, error) = (number(percent), number(percent_error.unwrap_or(0.0)));
                let rate = reads_per_second.filter(|rate| *rate > 0.0).map(estimate);
                let rate = rate
                    .map(|rate| format!(", about {rate} reads a second (right to a factor of 2)"));
                let rate = rate.unwrap_or_default();
                format!(
                    "{subject} spend{verb} {share} +-{error} % of {its} {own} in clock reads{rate}."
                )
            }
            _ if self.samples == 0 && cpu < 0.01 => {
                format!("{subject} used no CPU time in {seconds:.1} s.")
            }
            _ if self.samples == 0 => format!(
                "{subject} used {cpu:.2} s of CPU time, and no sample was taken, so no share is known: use a longer \
                 --duration or a higher --frequency."
            ),
            _ => format!(
                "{subject} used {cpu:.2} s of CPU time in user space, but the samples stand for {sampled:.2} s, so no \
                 share is known: run it as root or with CAP_PERFMON, where setuid programs and threads that live for \
                 less than 2 ms are seen, too."
            ),
        }
    }

    /// Returns what one should know about the figures.
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
            (self.read_ns > SLOW_NS && self.trap_ns.is_none())
                .then(|| "That is slow for a read of the clock: `vdso-doctor` says why, and what to do.".into()),
            (self.swallowed != 0)
                .then(|| format!("The guard kept a SIGTRAP from the command {}.", times(self.swallowed))),
            (self.lost != 0).then(|| {
                let bound = if self.trap_ns.is_some() { ", so the reads of a caller are a lower bound" } else { ", so `+-` is larger" };
                format!(
                    "{} records were lost, because this program had too little CPU time to take them out of the \
                     kernel's buffers{bound}: raise its priority (`sudo nice -n -10 vdso-who`).",
                    self.lost
                )
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

    /// Returns the numbers before a caller, or the title of the table.
    fn cells(&self, amounts: Option<Amounts>) -> String {
        let cell = |value: Option<f64>| value.map_or("-".into(), number);
        match (amounts, self.trap_ns) {
            (None, Some(_)) => "      reads  ".into(),
            (None, None) => " samples   % own     +-   reads/s  ".into(),
            (
                Some(Amounts {
                    reads: None,
                    records,
                    ..
                }),
                Some(_),
            ) => {
                format!("{:>11}  ", format!(">= {records}"))
            }
            (
                Some(Amounts {
                    reads: Some(reads), ..
                }),
                Some(_),
            ) => format!("{reads:>11}  "),
            (Some(amounts), None) => {
                let [percent, error] = [amounts.percent, amounts.percent_error].map(cell);
                let rate = amounts.reads_per_second.map_or("-".into(), estimate);
                format!("{:>8} {percent:>7} {error:>6} {rate:>9}  ", amounts.records)
            }
        }
    }

    /// Returns the table in lines of so many columns, at least 60.
    pub(crate) fn table(&self, columns: usize) -> String {
        let mut lines = vec![wrapped(&self.verdict())];
        let title = self.cells(None);
        let (indent, width) = (title.len(), columns.max(60) - title.len());
        let fit = |text: &str, width: usize| shortened(&text.escape_debug().to_string(), width);
        if !self.processes.is_empty() {
            lines.extend([String::new(), format!("{title}process, caller")]);
        }
        let [processes, rows] = if self.has_others {
            MOST_ROWS
        } else {
            [usize::MAX; 2]
        };
        for Process {
            name,
            unit,
            pid,
            count,
            amounts,
            callers,
            ..
        } in self.processes.iter().take(processes)
        {
            let which = pid.map_or(format!("{count} processes"), |pid| pid.to_string());
            let unit = unit
                .as_ref()
                .map_or(String::new(), |unit| format!(", {unit}"));
            lines
                .push(self.cells(Some(*amounts)) + &fit(&format!("{name} ({which}){unit}"), width));
            for row in callers.iter().take(rows) {
                let mut cells = self.cells(Some(row.amounts));
                for text in row.texts(width - 2) {
                    lines.push(format!("{cells}  {}", fit(&text, width - 2)));
                    cells = " ".repeat(indent);
                }
            }
        }
        if self.processes.len() > processes
            || self.processes.iter().any(|one| one.callers.len() > rows)
        {
            lines.push(format!("{:indent$}... (--json has all)", ""));
        }
        for note in self.notes() {
            lines.extend([String::new(), wrapped(&note)]);
        }
        lines.join("\n") + "\n"
    }
}

impl Row {
    /// Returns the function with its place, and its caller, in a line each if they fit.
    fn texts(&self, width: usize) -> Vec<String> {
        let Frame {
            function,
            file,
            line,
            module,
            ..
        } = &self.frame;
        let line = line.map_or(String::new(), |line| format!(":{line}"));
        let place = file.as_ref().unwrap_or(module).to_owned() + &line;
        let short = format!(
            "{function}  {}",
            place.rsplit('/').next().unwrap_or_default()
        );
        let fits = short.chars().count() <= width;
        let first = if fits {
            vec![short.trim_end().to_owned()]
        } else {
            vec![function.clone(), place]
        };
        let next = self
            .called_by
            .as_ref()
            .map(|frame| format!("in {}", frame.function));
        first
            .into_iter()
            .chain(next)
            .filter(|text| !text.is_empty())
            .collect()
    }
}

#[cfg(test)]
#[path = "../tests/unit/report.rs"]
mod tests;
