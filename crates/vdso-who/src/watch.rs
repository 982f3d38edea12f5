//! A measurement, from its start to its report.

use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::thread::sleep;
use std::time::{Duration, Instant};

use vdso_doctor::{ProcessError, ProcessVdso};

use crate::entry::Entries;
use crate::perf::{Event, Events, Trigger};
use crate::report::{Method, Report};
use crate::stack::Stacks;
use crate::tally::Tally;
use crate::target::Target;
use crate::trap::Trap;
use crate::{Error, Options, Progress, Result};

/// Functions of a vDSO that read a clock. A CPU has four breakpoints.
const FUNCTIONS: [&str; 5] = ["clock_gettime", "clock_gettime64", "gettimeofday", "time", "clock_getres"];
const BREAKPOINTS: usize = 4;

/// How long the buffers may fill.
const TICK: Duration = Duration::from_millis(20);

/// Reads are close if the second comes so soon after the first.
pub(crate) const CLOSE: u64 = 1000;

/// What [`watch`] found, and the command that it started.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// The report.
    pub report: Report,
    /// The command, which may still run.
    pub command: Target,
}

/// Watches a process. `progress` gets how far the measurement is once a second, and None at other
/// times and at the end; it ends the measurement by `Break`.
///
/// # Errors
/// Says what is missing, and what to do.
pub fn watch(
    options: &Options,
    progress: impl FnMut(Option<Progress>) -> ControlFlow<()>,
) -> Result<Outcome> {
    let mut target = options.pid.map_or_else(|| Target::start(&options.command), Target::attach)?;
    let mut watch = Watch::new(target.pid, options).map_err(|error| match options.pid {
        Some(pid) => format!("process {pid}: {error}").into(),
        None => error,
    })?;
    target.go()?;
    watch.watch(&target, progress);
    Ok(Outcome { report: watch.report(), command: target })
}

/// A measurement.
pub(crate) struct Watch<'a> {
    pid: u32,
    options: &'a Options,
    events: Events,
    /// What is counted; empty if samples are taken.
    addresses: Vec<u64>,
    trap: Trap,
    entries: Entries,
    tally: Tally,
    report: Report,
    start: Instant,
}

impl<'a> Watch<'a> {
    /// Finds out what is missing, and opens the events.
    pub(crate) fn new(pid: u32, options: &'a Options) -> Result<Self> {
        let vdso = match ProcessVdso::read(pid) {
            Err(ProcessError::NoVdso | ProcessError::Unmapped) => None,
            vdso => Some(vdso?),
        };
        let is_counted = options.count || options.exact;
        let trap = if is_counted { Trap::measure()? } else { Trap::default() };
        let (events, addresses) = open(pid, vdso.as_ref(), options)?;
        let stacks = Stacks::new(pid)?;
        let mut report = Report::new(pid, options, vdso.as_ref());
        report.sees_kernel = events.sees_kernel;
        report.trap_ns = is_counted.then_some(trap.ns);
        let entries = Entries::new(pid, vdso.clone());
        let tally = Tally::new(stacks, vdso, options.folded);
        Ok(Self { pid, options, events, addresses, trap, entries, tally, report, start: Instant::now() })
    }

    pub(crate) fn watch(
        &mut self,
        target: &Target,
        mut progress: impl FnMut(Option<Progress>) -> ControlFlow<()>,
    ) {
        self.start = Instant::now();
        let cpu_before = target.cpu_time().unwrap_or_default();
        let end = self.options.duration.or(self.options.pid.map(|_| 10));
        let end = end.map(|seconds| self.start + Duration::from_secs(seconds.into()));
        let mut slices = Slices::new(self.options.percent);
        loop {
            if self.options.count {
                slices.count(&mut self.events);
                // While the process still has names.
                self.drain();
                slices.pause(&mut progress);
            } else {
                sleep(if self.options.exact { TICK / 10 } else { TICK });
            }
            let has_ended = target.has_ended();
            // A process that ended has no clock.
            if let Some(now) = target.cpu_time() {
                self.report.cpu = now.saturating_sub(cpu_before);
            }
            self.drain();
            self.report.time = self.start.elapsed();
            let is_stopped = progress(self.progress()).is_break();
            let is_over = end.is_some_and(|end| Instant::now() >= end);
            if has_ended || is_over || is_stopped {
                break;
            }
        }
        self.events.disable_breakpoints();
        self.drain();
        self.add_counts();
        if let Some(now) = target.cpu_time() {
            self.report.cpu = now.saturating_sub(cpu_before);
        }
        let _ = progress(None);
    }

    fn drain(&mut self) {
        let is_sampled = self.report.method == Method::Sampled;
        let events = self.events.drain();
        // Once, because a process can map code with each read.
        if events.iter().any(|(_, event)| matches!(event, Event::Mapped)) {
            self.tally.refresh();
        }
        for (time, event) in events {
            match event {
                Event::Executed(pid) if pid == self.pid => self.replace(),
                // A process that it started, with a kernel that lets it inherit events.
                Event::Sample(taken) if taken.pid != self.pid => {}
                Event::Sample(taken) => {
                    self.report.samples += 1;
                    if !is_sampled || self.entries.is_clock_read(&taken) {
                        self.tally.add(time, &taken, self.trap.ns + CLOSE);
                    }
                }
                Event::Lost(records) => self.report.lost += records,
                Event::Executed(_) | Event::Mapped => {}
            }
        }
    }

    /// The process executed another program, whose vDSO has another address. If it ended already,
    /// nothing changes.
    fn replace(&mut self) {
        let base = |vdso: &Option<ProcessVdso>| vdso.as_ref().map(|vdso| vdso.range.start);
        self.report.programs += 1;
        // New events do not tell of a program that was executed before they were opened.
        for _ in 0..20 {
            let Ok(stacks) = Stacks::new(self.pid) else { return };
            let vdso = ProcessVdso::read(self.pid).ok();
            if !self.addresses.is_empty() {
                self.add_counts();
                // They occupy all breakpoints.
                self.events = Events::default();
                let Ok((events, addresses)) = open(self.pid, vdso.as_ref(), self.options) else {
                    sleep(TICK / 20);
                    continue;
                };
                self.events = events;
                self.addresses = addresses;
            }
            let is_same = base(&ProcessVdso::read(self.pid).ok()) == base(&vdso);
            self.entries = Entries::new(self.pid, vdso.clone());
            self.tally.replace(stacks, vdso);
            if is_same {
                return;
            }
        }
    }

    fn add_counts(&mut self) {
        let (reads, time) = self.events.counts(self.addresses.len());
        self.report.counted_reads += reads;
        self.report.counted += time;
    }

    fn progress(&self) -> Option<Progress> {
        let seconds = self.report.time.as_secs();
        (seconds >= 3 && self.report.time.subsec_millis() < 100).then_some(Progress {
            seconds,
            samples: self.report.samples,
            reads: self.tally.reads,
        })
    }

    pub(crate) fn report(mut self) -> Report {
        self.trap.correct(&self.tally.gaps);
        self.report.finish(&self.tally, self.trap);
        self.report
    }
}

/// The time between slices in which reads are counted.
struct Slices {
    percent: u32,
    length: Duration,
    random: u32,
}

impl Slices {
    fn new(percent: u8) -> Self {
        Self { percent: percent.into(), length: TICK / 10, random: std::process::id() }
    }

    fn count(&mut self, events: &mut Events) {
        let start = Instant::now();
        events.enable_breakpoints();
        // Switching takes long if there are many threads and CPUs.
        self.length = self.length.max(start.elapsed() * 10);
        sleep(self.length);
        events.disable_breakpoints();
    }

    /// Waits until the next slice. The waits are random, so that the slices do not follow a rhythm
    /// of the process.
    fn pause(&mut self, progress: &mut impl FnMut(Option<Progress>) -> ControlFlow<()>) {
        self.random = self.random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let share = 50 + (self.random >> 16) % 101;
        let end = Instant::now() + self.length * (100 - self.percent) * share / (100 * self.percent);
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            if progress(None).is_break() {
                break;
            }
            sleep(left.min(TICK));
        }
    }
}

/// Opens the events, and returns the addresses of the functions that are counted.
fn open(pid: u32, vdso: Option<&ProcessVdso>, options: &Options) -> Result<(Events, Vec<u64>)> {
    if !(options.count || options.exact) {
        let period = 1_000_000_000 / u64::from(options.frequency);
        return Ok((Events::open(pid, &Trigger::Time(period)).map_err(|error| explain(&error))?, Vec::new()));
    }
    let vdso = vdso.ok_or("it has no vDSO, where reads are counted: omit --count and --exact")?;
    let symbols = FUNCTIONS.iter().filter_map(|function| {
        let is_named =
            |name: &str| name.trim_start_matches("__vdso_").trim_start_matches("__kernel_") == *function;
        vdso.symbols.iter().find(|symbol| is_named(&symbol.name))
    });
    let mut addresses = Vec::new();
    for symbol in symbols {
        if !addresses.contains(&symbol.range.start) && addresses.len() < BREAKPOINTS {
            addresses.push(symbol.range.start);
        }
    }
    let mut events = Events::open(pid, &Trigger::Execution(&addresses)).map_err(|error| explain(&error))?;
    // Before a command runs, so that its first reads are counted, too.
    if options.exact {
        events.enable_breakpoints();
    }
    Ok((events, addresses))
}

/// Says what is missing, and what to do.
pub(crate) fn explain(error: &io::Error) -> Error {
    let file = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let paranoid = file("/proc/sys/kernel/perf_event_paranoid");
    let is_filtered = file("/proc/self/status").lines().any(|line| line == "Seccomp:\t2");
    let what = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES | libc::ENOSYS) if is_filtered => {
            "a seccomp filter denies perf_event_open(2): run it outside of the container, or allow the call (docker \
             run --cap-add PERFMON --security-opt seccomp=unconfined)"
                .into()
        }
        Some(libc::EPERM | libc::EACCES) => format!(
            "perf_event_open(2) is denied (kernel.perf_event_paranoid is {}): run it as root or with CAP_PERFMON and \
             CAP_SYS_PTRACE, or run `sysctl kernel.perf_event_paranoid=2` for your own processes",
            paranoid.trim()
        ),
        Some(libc::ENOSYS) => "this kernel has no perf_event_open(2)".into(),
        Some(libc::ENOSPC) => "all breakpoints of the CPU are in use: end the debugger, or omit --count and --exact".into(),
        Some(libc::EOPNOTSUPP | libc::ENODEV | libc::ENOENT) => {
            "this machine has no breakpoints that count: omit --count and --exact".into()
        }
        Some(libc::EMFILE | libc::ENFILE) => {
            "there are too many threads and CPUs for the limit of open files: raise it with `ulimit -Hn`".into()
        }
        Some(libc::ESRCH) => ProcessError::Ended.to_string(),
        None => error.to_string(),
        Some(_) => format!("perf_event_open(2) failed: {error}"),
    };
    what.into()
}
