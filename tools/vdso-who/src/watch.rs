//! A measurement, from its start to its report.

use std::collections::HashSet;
use std::fs::{self, File};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use crate::callers::{Findings, Message};
use crate::error::ended;
use crate::perf::{Event, Events, Plan, explain};
use crate::shared::Shared;
use crate::space::{Files, Space, check_debuginfod};
use crate::target::Target;
use crate::{Error, Options, Report, Result, Subject, breakpoints, callers, mapping, proc};

/// How long the buffers may fill; that of counted reads a tenth of it.
const TICK: Duration = Duration::from_millis(20);

/// If more records wait for their names, the next ones stay in the buffers. Each has 8 KiB.
const MOST_WAITING: usize = 1 << 10;

/// What [`watch`] found, and the command that it started.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// The report.
    pub report: Report,
    /// The process or the command, which may still run.
    pub target: Option<Target>,
}

/// The state of a measurement, for the function that [`watch`](crate::watch()) calls.
#[derive(Debug)]
#[non_exhaustive]
pub struct Progress<'a> {
    /// Since the start.
    pub seconds: f64,
    /// The samples, or the counted reads, so far.
    pub samples: u64,
    /// Those of clock reads.
    pub reads: u64,
    /// The file whose debug information a debuginfod server is asked for now.
    pub download: Option<&'a str>,
    /// The report of the last interval, once for each.
    pub report: Option<&'a Report>,
}

/// Watches a process. `is_over` is called 50 times a second (500 with [`Options::exact`]), and ends
/// the measurement if it returns true.
///
/// # Errors
/// If nothing can be measured; the text says what to do.
pub fn watch(options: &Options, mut is_over: impl FnMut(&Progress<'_>) -> bool) -> Result<Outcome> {
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
        let (queue, messages) = channel();
        let shared = Arc::<Shared>::default();
        let (known, of_counting) = (Arc::downgrade(&shared), shared.clone());
        let counting = scope.spawn(move || callers::count(options, pid, messages, &of_counting));
        let (events, followed, others) = (Events::default(), pid.into_iter().collect(), HashSet::new());
        let mut watch =
            Watch { options, pid, cgroup, events, queue, known, followed, others, has_executed: false };
        drop(shared);
        watch.run(&mut report, target.as_mut(), &mut is_over)?;
        // Without a sender it ends, after the last download.
        let known = watch.known.clone();
        drop(watch);
        while !counting.is_finished() {
            is_over(&Progress::of(&known, report.seconds, &mut String::new(), None));
            sleep(TICK);
        }
        Ok::<_, Error>(counting.join())
    })?;
    report.finish(found.map_err(ended)?);
    Ok(Outcome { report, target })
}

/// A measurement. Another thread counts the records and looks up their names, which can take long.
/// So this one is in time to take the records out of the buffers, and to see the process end.
struct Watch<'a> {
    options: &'a Options,
    pid: Option<u32>,
    cgroup: Option<File>,
    events: Events,
    queue: Sender<Message>,
    /// What the other thread says, until it ends.
    known: Weak<Shared>,
    /// The process that is watched, if it is one, and its descendants.
    followed: HashSet<u32>,
    /// Processes that are not watched. Their samples are not copied.
    others: HashSet<u32>,
    /// Whether the process executed another program.
    has_executed: bool,
}

/// What became of an interval when the other thread counted its records.
type Part = (Receiver<Findings>, Report);

impl Watch<'_> {
    fn is_command(&self) -> bool {
        matches!(self.options.subject, Subject::Command(_))
    }

    fn open(&mut self) -> Result<()> {
        let addresses = match self.pid {
            Some(pid) if self.options.exact => {
                breakpoints::addresses(&mut Space::of(pid, Files::default())?)?
            }
            _ => Vec::new(),
        };
        let mut pids: Vec<_> = self.pid.into_iter().collect();
        pids.extend(self.followed.iter().filter(|pid| Some(**pid) != self.pid));
        let plan = Plan {
            pids: &pids,
            cgroup: self.cgroup.as_ref(),
            follows: self.options.follows(),
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
        is_over: &mut impl FnMut(&Progress<'_>) -> bool,
    ) -> Result<()> {
        let mut download = String::new();
        self.follow_family();
        self.open()?;
        // Those that it started meanwhile. From now on, the kernel reports them.
        self.follow_family();
        // Of a command that waits, the kernel reports the mappings.
        for pid in self.followed.iter().copied().filter(|_| self.options.exact || !self.is_command()) {
            self.send(Event::Named(pid, proc::name(pid), true));
            match mapping::of_process(pid) {
                Err(error) if self.pid == Some(pid) => return Err(error),
                mappings => {
                    mappings.into_iter().flatten().for_each(|mapping| self.send(Event::Mapped(pid, mapping)));
                }
            }
        }
        report.sees_all = self.events.sees_all;
        if is_over(&Progress::of(&self.known, 0.0, &mut download, None)) {
            return Err(Error::Interrupted);
        }
        let start = Instant::now();
        let before = self.cpu_time(None);
        if before.is_none() && target.is_none() {
            return Err(Error::Unsupported("cannot read /proc/stat: is /proc mounted?".into()));
        }
        let (mut since, mut before) = (start, before.unwrap_or_default());
        if let Some(target) = &mut target {
            target.go(self.options.exact)?;
        }
        let default = (!self.is_command() && self.options.interval.is_none()).then_some(10);
        let end = self.options.duration.or(default);
        let end = end.map(|seconds| start + Duration::from_secs(seconds.into()));
        let interval = self.options.interval.filter(|_| !self.options.exact);
        let interval = interval.map(|seconds| Duration::from_secs(seconds.into()));
        let (mut part, mut cpu) = (None::<Part>, None);
        let over = loop {
            sleep(if self.options.exact { TICK / 10 } else { TICK });
            let made =
                part.take_if(|(found, report)| found.try_recv().map(|found| report.finish(found)).is_ok());
            let progress = Progress::of(
                &self.known,
                start.elapsed().as_secs_f64(),
                &mut download,
                made.as_ref().map(|(_, report)| report),
            );
            let is_over = is_over(&progress);
            // The clock of one that ended is gone, so its last time is kept.
            let used = match (&self.options.subject, self.pid) {
                // If the folder was made again, it has another cgroup, which starts at 0.
                (Subject::Cgroup(path), _) => {
                    cgroup_time(path).filter(|used| cpu.is_none_or(|cpu| *used >= cpu))
                }
                (_, pid) => pid.and_then(|pid| self.time_of(pid)),
            };
            let has_ended = match &target {
                Some(target) => target.has_ended(),
                None => self.cgroup.is_some() && used.is_none(),
            };
            let now = Instant::now();
            cpu = used.or(cpu);
            let guard = target.as_deref_mut().and_then(|target| target.guard.as_mut());
            // Another program has its vDSO, and its breakpoints, elsewhere.
            let is_other = self.options.exact && guard.is_none() && self.has_executed;
            if has_ended || is_over || is_other || end.is_some_and(|end| now >= end) {
                break now;
            }
            self.drain(false);
            if part.is_none() && interval.is_some_and(|interval| now >= since + interval) {
                let used = self.cpu_time(cpu).unwrap_or(before);
                let of_part = report.of_part(now - since, used.saturating_sub(before));
                let (to, found) = channel();
                (part, since, before) = (Some((found, of_part)), now, used);
                let _ = self.queue.send(Message::Take(to));
            }
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
        let used = self.cpu_time(cpu).unwrap_or(before).max(cpu.unwrap_or_default());
        *report = report.of_part(over - since, used.saturating_sub(before));
        report.counted += self.events.executions();
        self.drain(true);
        if let Some(guard) = target.and_then(|target| target.guard.as_mut()) {
            report.swallowed = guard.swallowed.load(Relaxed);
            guard.executed = None;
        }
        Ok(())
    }

    /// Follows the descendants that run now.
    fn follow_family(&mut self) {
        let pid = self.pid.filter(|_| self.options.follows() && !self.is_command());
        self.followed.extend(pid.into_iter().flat_map(proc::family));
    }

    /// Takes the records out of the buffers, unless too many wait to be counted. Then it waits for
    /// that if `waits` is set, or leaves the records there.
    fn drain(&mut self, waits: bool) {
        while self.known.upgrade().is_some_and(|known| known.waiting.load(Relaxed) > MOST_WAITING) {
            if !waits {
                return;
            }
            sleep(TICK);
        }
        for event in self.events.drain(&self.others) {
            if self.follows(&event) {
                self.send(event);
            }
        }
    }

    /// Returns whether a record is of a process that is watched.
    fn follows(&mut self, event: &Event) -> bool {
        let of = |pid| self.pid.is_none() || self.followed.contains(pid);
        match event {
            Event::Lost(_) => true,
            Event::Sample(taken) => {
                let is_watched = of(&taken.pid);
                self.others.extend(Some(taken.pid).filter(|_| !is_watched));
                is_watched
            }
            Event::Mapped(pid, _) => of(pid),
            Event::Forked(pid, parent) => {
                let is_watched = of(parent) && (self.pid.is_none() || self.options.follows());
                // The number may have been that of another process.
                self.others.remove(pid);
                self.followed.remove(pid);
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
        if let Some(known) = self.known.upgrade() {
            known.waiting.fetch_add(1, Relaxed);
            // It fails only if the other thread has panicked.
            let _ = self.queue.send(Message::Event(event));
        }
    }

    /// Returns the CPU time of all that is watched. `last` is the time of a process that has ended.
    /// The time of a descendant that ended is in that of the parent that waited for it.
    fn cpu_time(&self, last: Option<Duration>) -> Option<Duration> {
        let Some(pid) = self.pid else {
            return match &self.options.subject {
                Subject::Cgroup(path) => cgroup_time(path),
                _ => proc::cpu_time_of_host(),
            };
        };
        let own = self.time_of(pid).or(last)?;
        let others = self.followed.iter().filter(|other| **other != pid);
        Some(own + others.filter_map(|pid| self.time_of(*pid)).sum())
    }

    /// Returns the CPU time of a process. Without rights there are no samples of the kernel.
    fn time_of(&self, pid: u32) -> Option<Duration> {
        let in_user_space = !self.events.sees_all && !self.options.exact;
        proc::cpu_time(pid, self.options.follows(), in_user_space)
    }
}

impl<'a> Progress<'a> {
    fn of(known: &Weak<Shared>, seconds: f64, download: &'a mut String, report: Option<&'a Report>) -> Self {
        let known = known.upgrade();
        let of = |number: fn(&Shared) -> u64| known.as_deref().map_or(0, number);
        let (samples, reads) =
            (of(|known| known.samples.load(Relaxed)), of(|known| known.reads.load(Relaxed)));
        *download = known.as_ref().map_or(String::new(), |known| known.download());
        Self { seconds, samples, reads, download: Some(&**download).filter(|file| !file.is_empty()), report }
    }
}

/// Returns the CPU time of a cgroup, which only version 2 has in this file.
fn cgroup_time(folder: &Path) -> Option<Duration> {
    let stat = fs::read_to_string(folder.join("cpu.stat")).ok()?;
    let micros = stat.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
    Some(Duration::from_micros(micros.parse().ok()?))
}
