//! The findings of a measurement, as data.

#[cfg(test)]
#[path = "../../tests/unit/comparison.rs"]
mod compared;
mod comparison;
mod figures;
#[cfg(test)]
#[path = "../../tests/unit/report.rs"]
mod tests;
#[cfg(test)]
#[path = "../../tests/unit/unknown.rs"]
mod unknown;

use std::cmp::Reverse;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Serialize, Serializer};

use crate::address_space::Frame;
use crate::arguments::{Arguments, GroupBy};
use crate::clock_read::Clock;
use crate::error;
use crate::proc;
use crate::tally::{Counts, Findings, Group, Key, Unknown};
pub(crate) use comparison::{Change, Comparison, Shares};
use figures::{error, share};

/// How many processes with the same name have a row each. The others share one.
const MOST_OF_NAME: usize = 7;

/// Figures about clock reads. A figure that the method does not measure is None.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Amounts {
    /// The samples in clock reads, or the counted reads that have a record.
    pub(crate) records: u64,
    pub(crate) percent: Option<f64>,
    pub(crate) percent_error: Option<f64>,
    pub(crate) reads_per_second: Option<f64>,
    pub(crate) reads: Option<u64>,
    /// The share of the records that are in system calls.
    pub(crate) system_call_percent: Option<f64>,
    pub(crate) clocks: Clocks,
}

/// How many records there are of each clock. Records whose clock is not known are left out. With
/// --exact, the records are counted reads. Otherwise they are samples in system calls.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clocks([u64; Clock::COUNT]);

/// The records of a clock, in JSON.
#[derive(Serialize)]
struct ClockRecords {
    name: &'static str,
    records: u64,
}

impl Serialize for Clocks {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut clocks = Vec::new();
        for (index, records) in self.0.into_iter().enumerate() {
            if records > 0 {
                let name = Clock::of_index(index).name();
                clocks.push(ClockRecords { name, records });
            }
        }
        clocks.sort_by_key(|clock| Reverse(clock.records));
        clocks.serialize(serializer)
    }
}

impl Amounts {
    /// Returns the clock of more than 90 % of these records, if there is one.
    pub(crate) fn clock(&self) -> Option<Clock> {
        let all: u64 = self.clocks.0.iter().sum();
        let most = self
            .clocks
            .0
            .iter()
            .position(|records| 10 * records > 9 * all)?;
        Some(Clock::of_index(most))
    }
}

/// The report. `schema.json` describes the fields.
#[derive(Clone, Debug, Default, Serialize)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Report {
    format: u32,
    method: &'static str,
    group_by: GroupBy,
    pub(crate) pid: Option<u32>,
    pub(crate) name: String,
    /// Whether there was one event for each CPU, which also samples the kernel.
    pub(crate) system_wide: bool,
    pub(crate) has_vdso: bool,
    /// When the measurement ended, in seconds since 1970.
    time: f64,
    pub(crate) seconds: f64,
    pub(crate) cpu_seconds: f64,
    pub(crate) frequency: u32,
    pub(crate) samples: u64,
    pub(crate) lost: u64,
    pub(crate) swallowed: u64,
    pub(crate) read_ns: f64,
    pub(crate) trap_ns: Option<u64>,
    #[serde(skip)]
    pub(crate) counted: u64,
    #[serde(flatten)]
    pub(crate) whole: Amounts,
    pub(crate) processes: Vec<Process>,
    pub(crate) comparison: Option<Comparison>,
    /// Whether processes without a read have a row as well. A comparison needs them, because the
    /// earlier report may contain reads of them.
    #[serde(skip)]
    keeps_all: bool,
    /// Whether processes with the same name share a row if there are many of them. A server that
    /// starts a worker for each query would otherwise fill the report. True without --group-by.
    #[serde(skip)]
    merges: bool,
    /// Whether processes other than `pid` had samples.
    #[serde(skip)]
    pub(crate) has_others: bool,
    /// Samples of which it is not known whether they were in a read.
    #[serde(skip)]
    pub(crate) unknown: Unknown,
    /// For how long CPUs may have run without an event.
    #[serde(skip)]
    pub(crate) unwatched: Duration,
    /// Whether this is the report of an interval, after which more reports follow.
    #[serde(skip)]
    pub(crate) is_interval: bool,
    /// A process that is younger than its perf map.
    #[serde(skip)]
    pub(crate) stale_map: Option<u32>,
    /// The boot parameter that switches the vDSO off, if the kernel was booted with one.
    #[serde(skip)]
    pub(crate) boot_parameter: Option<&'static str>,
    /// A line for each call chain.
    #[serde(skip)]
    pub(crate) folded: Vec<String>,
}

/// The processes of a row.
#[derive(Clone, Debug, Serialize)]
#[allow(
    clippy::struct_field_names,
    reason = "the fields have the same names as in the JSON"
)]
pub(crate) struct Process {
    pub(crate) name: String,
    pub(crate) unit: Option<String>,
    pub(crate) pid: Option<u32>,
    /// The thread of `pid`, with --group-by thread.
    pub(crate) thread: Option<u32>,
    /// The name of the thread's process, with --group-by thread.
    pub(crate) process_name: Option<String>,
    pub(crate) count: usize,
    pub(crate) samples: u64,
    #[serde(flatten)]
    pub(crate) amounts: Amounts,
    pub(crate) callers: Vec<Row>,
}

/// The row of a caller.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    #[serde(flatten)]
    pub(crate) frame: Frame,
    pub(crate) called_by: Option<Frame>,
    /// The callers of `called_by`, with --depth.
    pub(crate) outer_callers: Vec<Frame>,
    /// The first caller beyond `called_by` and `outer_callers` that has a name. It is set only if
    /// no caller in `called_by` and `outer_callers` has a name.
    pub(crate) named_caller: Option<Frame>,
    #[serde(flatten)]
    pub(crate) amounts: Amounts,
}

/// The limit, in nanoseconds, above which a read is slow. A read in user space takes less, and a
/// system call takes more.
const SLOW_NS: f64 = 100.0;

/// By how many seconds the time that a process spent in user space can be wrong: two ticks of
/// `USER_HZ`.
const PRECISION: f64 = 0.02;

impl Report {
    pub(crate) fn new(arguments: &Arguments, pid: Option<u32>, trap_ns: Option<u64>) -> Self {
        let name = match &arguments.cgroup {
            Some(path) => path.display().to_string(),
            None => String::new(),
        };
        Self {
            format: 1,
            method: if arguments.exact { "exact" } else { "sampled" },
            group_by: arguments.grouping(),
            pid,
            name,
            frequency: arguments.frequency(),
            keeps_all: arguments.compare.is_some(),
            merges: arguments.group_by.is_none(),
            read_ns: figures::read_ns(),
            trap_ns,
            boot_parameter: proc::vdso_parameter(),
            ..Self::default()
        }
    }

    /// Returns the report of a part of the measurement. [`Self::finish`] then adds the findings.
    ///
    /// The cost of a read is measured for each part, because the clock source can change while
    /// `top` runs.
    pub(crate) fn of_part(&self, duration: Duration, cpu: Duration) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            read_ns: figures::read_ns(),
            time: now.unwrap_or_default().as_secs_f64(),
            seconds: duration.as_secs_f64(),
            cpu_seconds: cpu.as_secs_f64(),
            ..self.clone()
        }
    }

    /// Adds the findings from the records.
    pub(crate) fn finish(&mut self, mut found: Findings) {
        if self.merges {
            found.merge(MOST_OF_NAME);
        }
        if let Some(name) = found.name.take() {
            self.name = name;
        }
        self.samples = found.samples;
        self.correct_cpu_time();
        self.has_vdso = found.has_vdso;
        self.stale_map = found.stale_map;
        self.counted = self.counted.max(found.reads);
        // The kernel reports lost records only together with a later record, which can be missing
        // at the end. The breakpoints themselves count every execution, so with --exact the lost
        // records are the executions without a record.
        self.lost = if self.is_exact() {
            self.counted - found.reads
        } else {
            found.lost
        };
        self.count_whole(&found);
        self.processes.clear();
        for (key, group) in &found.groups {
            self.has_others |= self.pid.is_none() || group.has_others(self.pid);
            let process = self.process(key, group);
            let is_shown = process.amounts.records > 0 || group.unknown.foreign > 0;
            if is_shown || found.reads == 0 || self.keeps_all {
                self.processes.push(process);
            }
        }
        self.processes.sort_by(|a, b| {
            (b.amounts.records, &a.name, a.pid).cmp(&(a.amounts.records, &b.name, b.pid))
        });
        self.folded = found.folded();
    }

    /// Replaces a CPU time that is much too small with the CPU time that the samples show.
    ///
    /// The CPU time of a descendant that has ended is known only if a watched process has waited
    /// for it. If its parent ignores SIGCHLD, or if a process that is not watched adopted it, its
    /// CPU time is lost. But if there is one event for each CPU, the kernel takes a sample in each
    /// period of CPU time of any process, in user space and in the kernel. So the samples alone
    /// show the CPU time, although less precisely: a program that waits for timers can have more or
    /// fewer samples than its share. Therefore the CPU time is replaced only if there are more than
    /// twice as many samples as it should have caused.
    fn correct_cpu_time(&mut self) {
        let is_lossy = self.pid.is_some() && self.system_wide && !self.is_exact();
        let most = 2.0 * self.expected() + self.tolerance();
        if is_lossy && self.samples as f64 > most {
            self.cpu_seconds = self.samples as f64 / f64::from(self.frequency);
        }
    }

    /// Adds the comparison with an earlier report.
    pub(crate) fn compare(&mut self, earlier: &Shares) -> error::Result<()> {
        self.comparison = Some(Comparison::new(earlier, self)?);
        Ok(())
    }

    fn count_whole(&mut self, found: &Findings) {
        let mut whole = Counts::default();
        self.unknown = Unknown::default();
        for group in found.groups.values() {
            self.unknown.add(group.unknown);
            whole.add(group.counts());
        }
        self.whole = self.amounts(whole, found.samples, self.unknown);
        if self.is_exact() {
            // A breakpoint is counted even if its record is lost.
            self.whole.reads = Some(self.counted);
            self.whole.reads_per_second = Some(self.counted as f64 / self.seconds);
        }
    }

    fn process(&self, key: &Key, group: &Group) -> Process {
        let mut callers = Vec::new();
        for (caller, counts) in &group.callers {
            callers.push(Row {
                frame: Frame::clone(&caller.first),
                called_by: caller.next.as_deref().cloned(),
                outer_callers: caller
                    .outer
                    .iter()
                    .map(|frame| Frame::clone(frame))
                    .collect(),
                named_caller: caller.named.as_deref().cloned(),
                amounts: self.amounts(*counts, group.samples, group.unknown),
            });
        }
        let order = |row: &Row| (Reverse(row.amounts.records), row.frame.function.clone());
        callers.sort_by_cached_key(order);
        Process {
            name: key.name.clone(),
            unit: key.unit.clone(),
            pid: group.only_pid(),
            thread: key.thread,
            process_name: key.process_name.clone(),
            count: group.pids.len(),
            samples: group.samples,
            amounts: self.amounts(group.counts(), group.samples, group.unknown),
            callers,
        }
    }

    /// Returns the figures for a caller, a process or all processes. `samples` is the number of
    /// samples of the process or of all processes. Any of the `unknown` samples might be in a read.
    fn amounts(&self, counts: Counts, samples: u64, unknown: Unknown) -> Amounts {
        let mut amounts = Amounts {
            records: counts.records,
            clocks: Clocks(counts.clocks),
            ..Amounts::default()
        };
        if !self.is_exact() && self.system_wide && counts.records > 0 {
            amounts.system_call_percent = Some(100.0 * share(counts.calls, counts.records));
        }
        if self.is_exact() {
            // It is not known to which callers the lost records belong.
            if self.lost == 0 {
                amounts.reads = Some(counts.records);
                amounts.reads_per_second = Some(counts.records as f64 / self.seconds);
            }
        } else if self.has_share() && !is_sandboxed(samples, unknown) {
            let unknown = unknown.sum() + counts.inferred;
            let chance = error(counts.records, samples);
            let error = chance + share(unknown, samples) + self.missing();
            amounts.percent = Some(100.0 * share(counts.records, samples));
            amounts.percent_error = Some(100.0 * error.min(1.0));
            if unknown <= counts.records {
                amounts.reads_per_second = self.rate(counts);
            }
        }
        amounts
    }

    /// Returns how large a share of all samples is missing. Any of the missing samples might have
    /// been in a read.
    pub(crate) fn missing(&self) -> f64 {
        let lost = share(self.lost, self.samples + self.lost);
        lost + self.unseen().max(self.unwatched_share())
    }

    /// Returns the share of the CPU time for which there is neither a sample nor a lost record,
    /// beyond what chance explains. The reason can be that a CPU went offline, or that the kernel
    /// took fewer samples than it should.
    pub(crate) fn unseen(&self) -> f64 {
        let unseen = self.lacking() - self.tolerance();
        (unseen / self.expected().max(1.0)).max(0.0)
    }

    /// Returns the largest share of the CPU time that can have been used on CPUs without an event.
    /// Unlike [`Self::unseen`], this share includes what chance could explain, because here the
    /// cause is known.
    fn unwatched_share(&self) -> f64 {
        let most = self.unwatched.as_secs_f64() * f64::from(self.frequency);
        let unwatched = most.min(self.lacking() + self.tolerance());
        (unwatched / self.expected().max(1.0)).max(0.0)
    }

    /// Returns the reads per second, if the cost of a read is known.
    ///
    /// `read_ns` is the cost of a read through the vDSO. On a machine where the vDSO reads the
    /// clock in user space, a system call can cost 30 times as much. So on such a machine, the rate
    /// is not known if more than half of the samples in reads are in system calls.
    ///
    /// On a machine where the vDSO makes a system call, every read costs as much. But without
    /// privileges, the samples and the CPU time are only of user space, which is a small part of
    /// `read_ns`, so the rate is not known either. Nor is it if the cost could not be measured.
    fn rate(&self, counts: Counts) -> Option<f64> {
        let is_known = if self.is_slow() {
            self.system_wide
        } else {
            counts.calls <= counts.records / 2
        };
        if !is_known || self.cpu_seconds <= 0.0 || self.read_ns <= 0.0 {
            return None;
        }
        let in_reads = self.cpu_seconds * counts.records as f64 / self.samples as f64;
        Some(in_reads / self.seconds / self.read_ns * 1e9)
    }

    /// Returns whether the rows are threads.
    pub(crate) fn is_by_thread(&self) -> bool {
        self.processes
            .iter()
            .any(|process| process.thread.is_some())
    }

    /// Returns whether reads are counted with breakpoints.
    pub(crate) fn is_exact(&self) -> bool {
        self.trap_ns.is_some()
    }

    /// Returns whether a read of the clock is slow on this machine.
    pub(crate) fn is_slow(&self) -> bool {
        self.read_ns > SLOW_NS
    }

    /// Returns how many samples the CPU time should have caused.
    fn expected(&self) -> f64 {
        self.cpu_seconds * f64::from(self.frequency)
    }

    /// Returns how many of the expected samples were neither taken nor reported as lost.
    fn lacking(&self) -> f64 {
        self.expected() - (self.samples + self.lost) as f64
    }

    /// Returns by how many samples the real number can differ from the expected one: three standard
    /// deviations, the 5 % by which the kernel's clocks differ, and the precision of the time in
    /// user space.
    fn tolerance(&self) -> f64 {
        let expected = self.expected();
        3.0 * expected.sqrt() + 0.05 * expected + PRECISION * f64::from(self.frequency)
    }

    /// Returns whether the samples represent the CPU time. If there is one event for each CPU, the
    /// events see every thread, however short it lives, and samples that are missing are part of
    /// the error. Events of threads do not see the threads that live for less than a sampling
    /// period, so in that case the number of samples must match the CPU time.
    fn has_share(&self) -> bool {
        let missing = (self.expected() - self.samples as f64).abs();
        self.samples != 0 && (self.system_wide || missing <= self.tolerance())
    }
}

/// Returns whether most samples are from gVisor sandboxes, in which no read can be seen.
fn is_sandboxed(samples: u64, unknown: Unknown) -> bool {
    2 * unknown.sandboxed > samples
}
