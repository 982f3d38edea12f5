//! A measurement, from its start to its report.

use std::fs::{self, File};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::perf::{Events, Plan, explain};
use crate::stack::check_debuginfod;
use crate::tally::Tally;
use crate::target::Target;
use crate::{Options, Report, Result, Subject, proc, trap};

/// How long the buffers may fill; that of counted reads a tenth of it.
const TICK: Duration = Duration::from_millis(20);

/// What [`watch`] found, and the command that it started.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// The report.
    pub report: Report,
    /// The process or the command, which may still run.
    pub target: Option<Target>,
}

/// Watches a process. `is_over` is asked 50 times a second, and ends the measurement.
///
/// # Errors
/// Says what is missing, and what to do.
pub fn watch(options: &Options, is_over: impl FnMut() -> bool) -> Result<Outcome> {
    if options.debuginfod {
        check_debuginfod()?;
    }
    let mut target = match &options.subject {
        Subject::Process(_) if options.exact && !options.may_end_process => {
            return Err(
                "--exact can end a process that was not started here: start it by `vdso-who --exact \
                        -- COMMAND`, or add --may-end-process"
                    .into(),
            );
        }
        Subject::Process(pid) => Some(Target::attach(*pid)?),
        Subject::Command(words) => Some(Target::start(words, options.exact)?),
        _ if options.exact => return Err("--exact is for a command".into()),
        _ => None,
    };
    let pid = target.as_ref().map(|target| target.pid);
    let cgroup = match &options.subject {
        Subject::Cgroup(path) => {
            let folder = File::open(path).ok().filter(|_| cgroup_time(path).is_some());
            Some(folder.ok_or_else(|| {
                format!(
                    "{} is no cgroup of version 2: `mount -t cgroup2` shows where these are",
                    path.display()
                )
            })?)
        }
        _ => None,
    };
    let trap_ns = if options.exact { Some(trap::test_host()?) } else { None };
    let tally = Tally::new(options, pid)?;
    let report = Report::new(options, pid, trap_ns);
    let mut watch = Watch { options, pid, cgroup, events: Events::default(), tally, report };
    watch.open()?;
    if let Some(target) = &mut target {
        target.go(options.exact)?;
    }
    watch.run(target.as_mut(), is_over)?;
    watch.report.finish(&watch.tally);
    Ok(Outcome { report: watch.report, target })
}

/// A measurement.
struct Watch<'a> {
    options: &'a Options,
    pid: Option<u32>,
    cgroup: Option<File>,
    events: Events,
    tally: Tally,
    report: Report,
}

impl Watch<'_> {
    fn is_command(&self) -> bool {
        matches!(self.options.subject, Subject::Command(_))
    }

    fn open(&mut self) -> Result<()> {
        let addresses = match self.pid {
            Some(pid) if self.options.exact => {
                trap::addresses(self.tally.spaces.get_mut(&pid).ok_or("the process ended")?)?
            }
            _ => Vec::new(),
        };
        let plan = Plan {
            pid: self.pid,
            cgroup: self.cgroup.as_ref(),
            // A process that the command starts has no guard.
            follows: self.is_command() && !self.options.exact,
            period: 1_000_000_000 / u64::from(self.options.frequency),
            addresses: &addresses,
        };
        self.events = Events::open(&plan).map_err(|error| match &self.options.subject {
            Subject::Process(pid) => format!("process {pid}: {}", explain(&error)),
            _ => explain(&error),
        })?;
        self.report.sees_all = self.events.sees_all;
        Ok(())
    }

    fn run(&mut self, mut target: Option<&mut Target>, mut is_over: impl FnMut() -> bool) -> Result<()> {
        let start = Instant::now();
        let cpu_before = match self.cpu_time(target.as_deref()) {
            None if target.is_none() => return Err("cannot read /proc/stat: is /proc mounted?".into()),
            time => time.unwrap_or_default(),
        };
        let mut cpu = cpu_before;
        let default = (!self.is_command()).then_some(10);
        let end = self.options.duration.or(default);
        let end = end.map(|seconds| start + Duration::from_secs(seconds.into()));
        let over = loop {
            sleep(if self.options.exact { TICK / 10 } else { TICK });
            let has_ended = target.as_ref().is_some_and(|target| target.has_ended());
            // A process that ended has no clock.
            cpu = target.as_ref().and_then(|target| target.cpu_time()).unwrap_or(cpu);
            self.drain();
            let guard = target.as_deref_mut().and_then(|target| target.guard.as_mut());
            while let Some(_waits) = guard.as_ref().and_then(|guard| guard.executed.as_ref()?.try_recv().ok())
            {
                self.set_other_breakpoints()?;
            }
            let over = Instant::now();
            let is_over = is_over() || end.is_some_and(|end| over >= end);
            // Another program has its vDSO, and its breakpoints, elsewhere.
            let is_other = self.options.exact && guard.is_none() && self.tally.has_executed;
            if has_ended || is_over || is_other {
                break over;
            }
        };
        cpu = self.cpu_time(target.as_deref()).unwrap_or(cpu);
        self.report.cpu_seconds = cpu.saturating_sub(cpu_before).as_secs_f64();
        self.report.counted += self.events.executions();
        self.drain();
        // It can end while names are read.
        let ended = target.as_ref().and_then(|target| target.ended.get());
        self.report.seconds =
            ended.map_or(over, |ended| over.min(*ended)).duration_since(start).as_secs_f64();
        if let Some(guard) = target.and_then(|target| target.guard.as_mut()) {
            self.report.swallowed = guard.swallowed.load(Ordering::Relaxed);
            guard.executed = None;
        }
        // Breakpoints end with their events.
        self.events = Events::default();
        Ok(())
    }

    fn drain(&mut self) {
        for event in self.events.drain(self.pid.filter(|_| !self.is_command())) {
            self.tally.add(event);
        }
    }

    /// A command that executed another program waits until this has the breakpoints of its vDSO.
    fn set_other_breakpoints(&mut self) -> Result<()> {
        self.drain();
        self.report.counted += self.events.executions();
        // They occupy all breakpoints.
        self.events = Events::default();
        self.open()
    }

    /// The CPU time of all that is watched.
    fn cpu_time(&self, target: Option<&Target>) -> Option<Duration> {
        match (&self.options.subject, target) {
            (Subject::Cgroup(path), _) => cgroup_time(path),
            (_, None) => proc::cpu_time_of_host(),
            (_, Some(_)) if self.tally.followed.len() > 1 => {
                Some(self.tally.followed.iter().filter_map(|pid| proc::cpu_time_with_children(*pid)).sum())
            }
            (_, Some(target)) => target.cpu_time(),
        }
    }
}

/// The CPU time of a cgroup, which only version 2 has in this file.
fn cgroup_time(folder: &Path) -> Option<Duration> {
    let stat = fs::read_to_string(folder.join("cpu.stat")).ok()?;
    let micros = stat.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
    Some(Duration::from_micros(micros.parse().ok()?))
}
