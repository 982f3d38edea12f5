//! A measurement, from its start to its report.

use std::collections::HashSet;
use std::fs::{self, File};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use crate::error::ended;
use crate::perf::{Event, Events, Plan, explain};
use crate::space::{Files, Space, check_debuginfod};
use crate::target::Target;
use crate::{Error, Options, Report, Result, Subject, breakpoints, callers, proc, space};

/// How long the buffers may fill; that of counted reads a tenth of it.
const TICK: Duration = Duration::from_millis(20);

/// If more records wait for their names, the next ones stay in the buffers.
const MOST_WAITING: usize = 1 << 12;

/// What [`watch`] found, and the command that it started.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// The report.
    pub report: Report,
    /// The process or the command, which may still run.
    pub target: Option<Target>,
}

/// Watches a process. `is_over` is asked 50 times a second, 500 with [`Options::exact`], and ends
/// the measurement.
///
/// # Errors
/// If nothing can be measured; the text says what to do.
pub fn watch(options: &Options, is_over: impl FnMut() -> bool) -> Result<Outcome> {
    proc::check_namespace()?;
    if options.debuginfod {
        check_debuginfod()?;
    }
    let mut target = match &options.subject {
        Subject::Process(_) if options.exact && !options.may_end_process => {
            return Err(Error::Options(
                "--exact can end a process that was not started here: start it by `vdso-who --exact -- COMMAND`, or \
                 add --may-end-process"
                    .into(),
            ));
        }
        Subject::Process(pid) => Some(Target::attach(*pid)?),
        Subject::Command(words) => Some(Target::start(words, options.exact)?),
        _ if options.exact => return Err(Error::Options("--exact is for a command".into())),
        _ => None,
    };
    let pid = target.as_ref().map(|target| target.pid);
    let cgroup = match &options.subject {
        Subject::Cgroup(path) => {
            let folder = File::open(path).ok().filter(|_| cgroup_time(path).is_some());
            Some(folder.ok_or_else(|| {
                Error::Options(format!(
                    "{} is no cgroup of version 2: `mount -t cgroup2` shows where these are",
                    path.display()
                ))
            })?)
        }
        _ => None,
    };
    let trap_ns = if options.exact { Some(breakpoints::test_host()?) } else { None };
    let mut report = Report::new(options, pid, trap_ns);
    let found = thread::scope(|scope| {
        let (queue, events) = channel();
        let counted = Arc::default();
        let waiting = Arc::downgrade(&counted);
        let counting = scope.spawn(move || callers::count(options, pid, events, &counted));
        let (events, followed) = (Events::default(), pid.into_iter().collect());
        let mut watch = Watch { options, pid, cgroup, events, queue, waiting, followed, has_executed: false };
        watch.run(&mut report, target.as_mut(), is_over)?;
        // Without a sender it ends.
        drop(watch);
        Ok::<_, Error>(counting.join())
    })?;
    report.finish(&found.map_err(ended)?);
    Ok(Outcome { report, target })
}

/// A measurement. Another thread counts the records and looks up their names, which can take long.
/// So this one is in time to take the records out of the buffers, and to see the process end.
struct Watch<'a> {
    options: &'a Options,
    pid: Option<u32>,
    cgroup: Option<File>,
    events: Events,
    queue: Sender<Event>,
    /// How many records are in the queue, until the other thread ends.
    waiting: Weak<AtomicUsize>,
    /// The process that is watched, if it is one, and those that a command started.
    followed: HashSet<u32>,
    /// Whether the process executed another program.
    has_executed: bool,
}

impl Watch<'_> {
    fn is_command(&self) -> bool {
        matches!(self.options.subject, Subject::Command(_))
    }

    /// Whether the processes that a command starts are watched, too. They have no guard.
    fn follows_children(&self) -> bool {
        self.is_command() && !self.options.exact
    }

    fn open(&mut self) -> Result<()> {
        let addresses = match self.pid {
            Some(pid) if self.options.exact => {
                breakpoints::addresses(&mut Space::of(pid, Files::default())?)?
            }
            _ => Vec::new(),
        };
        let plan = Plan {
            pid: self.pid,
            cgroup: self.cgroup.as_ref(),
            follows: self.follows_children(),
            period: 1_000_000_000 / u64::from(self.options.frequency),
            addresses: &addresses,
        };
        self.events = Events::open(&plan).map_err(|error| explain(error, &plan))?;
        Ok(())
    }

    fn run(
        &mut self,
        report: &mut Report,
        mut target: Option<&mut Target>,
        mut is_over: impl FnMut() -> bool,
    ) -> Result<()> {
        // Of a command that waits, the kernel reports the mappings.
        if let Some(pid) = self.pid.filter(|_| self.options.exact || !self.is_command()) {
            self.send(Event::Named(pid, proc::name(pid), true));
            for mapping in space::mappings(pid)? {
                self.send(Event::Mapped(pid, mapping));
            }
        }
        self.open()?;
        report.sees_all = self.events.sees_all;
        if is_over() {
            return Err(Error::Interrupted);
        }
        let start = Instant::now();
        let cpu_before = match self.cpu_time(target.as_deref()) {
            None if target.is_none() => {
                return Err(Error::Unsupported("cannot read /proc/stat: is /proc mounted?".into()));
            }
            time => time.unwrap_or_default(),
        };
        if let Some(target) = &mut target {
            target.go(self.options.exact)?;
        }
        let default = (!self.is_command()).then_some(10);
        let end = self.options.duration.or(default);
        let end = end.map(|seconds| start + Duration::from_secs(seconds.into()));
        let mut cpu = cpu_before;
        let over = loop {
            sleep(if self.options.exact { TICK / 10 } else { TICK });
            let is_over = is_over();
            let (has_ended, used) = match (&self.options.subject, &target) {
                // If the folder was made again, it has another cgroup, which starts at 0.
                (Subject::Cgroup(path), _) => {
                    let used = cgroup_time(path).filter(|used| *used >= cpu);
                    (used.is_none(), used)
                }
                (_, Some(target)) => (target.has_ended(), target.cpu_time()),
                (_, None) => (false, None),
            };
            let now = Instant::now();
            // A process or cgroup that ended has no clock.
            cpu = used.unwrap_or(cpu);
            let guard = target.as_deref_mut().and_then(|target| target.guard.as_mut());
            // Another program has its vDSO, and its breakpoints, elsewhere.
            let is_other = self.options.exact && guard.is_none() && self.has_executed;
            if has_ended || is_over || is_other || end.is_some_and(|end| now >= end) {
                break now;
            }
            self.drain(false);
            while let Some(_waits) = guard.as_ref().and_then(|guard| guard.executed.as_ref()?.try_recv().ok())
            {
                // A command that executed another program waits until this has its breakpoints.
                self.drain(true);
                report.counted += self.events.executions();
                // They occupy all breakpoints.
                self.events = Events::default();
                self.open()?;
            }
        };
        cpu = self.cpu_time(target.as_deref()).map_or(cpu, |used| used.max(cpu));
        report.cpu_seconds = cpu.saturating_sub(cpu_before).as_secs_f64();
        report.seconds = over.duration_since(start).as_secs_f64();
        report.counted += self.events.executions();
        self.drain(true);
        if let Some(guard) = target.and_then(|target| target.guard.as_mut()) {
            report.swallowed = guard.swallowed.load(Relaxed);
            guard.executed = None;
        }
        Ok(())
    }

    /// Takes the records out of the buffers, unless too many wait. Then it `waits`, or leaves them
    /// there.
    fn drain(&mut self, waits: bool) {
        while self.waiting.upgrade().is_some_and(|waiting| waiting.load(Relaxed) > MOST_WAITING) {
            if !waits {
                return;
            }
            sleep(TICK);
        }
        let only = self.pid.filter(|_| !self.is_command());
        for event in self.events.drain(only).collect::<Vec<_>>() {
            if self.follows(&event) {
                self.send(event);
            }
        }
    }

    /// Whether a record is of a process that is watched.
    fn follows(&mut self, event: &Event) -> bool {
        let of = |pid| self.pid.is_none() || self.followed.contains(pid);
        match event {
            Event::Lost(_) => true,
            Event::Sample(taken) => of(&taken.pid),
            Event::Mapped(pid, _) => of(pid),
            Event::Forked(pid, parent) => {
                // The children of a process that ran before are not watched.
                let is_watched = of(parent) && (self.pid.is_none() || self.is_command());
                self.followed.extend(self.pid.filter(|_| is_watched).map(|_| *pid));
                is_watched
            }
            Event::Named(pid, _, has_executed) => {
                self.has_executed |= *has_executed && self.pid == Some(*pid);
                of(pid)
            }
        }
    }

    fn send(&self, event: Event) {
        if let Some(waiting) = self.waiting.upgrade() {
            waiting.fetch_add(1, Relaxed);
            // It fails only if the other thread has panicked.
            let _ = self.queue.send(event);
        }
    }

    /// The CPU time of all that is watched.
    fn cpu_time(&self, target: Option<&Target>) -> Option<Duration> {
        match (&self.options.subject, target) {
            (Subject::Cgroup(path), _) => cgroup_time(path),
            (_, None) => proc::cpu_time_of_host(),
            (_, Some(_)) if self.follows_children() && self.followed.len() > 1 => {
                Some(self.followed.iter().filter_map(|pid| proc::cpu_time_with_children(*pid)).sum())
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
