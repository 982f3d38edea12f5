//! A measurement, from its start to its report.

use std::collections::HashSet;
use std::fs::{self, File};
use std::os::fd::AsRawFd as _;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use crate::callers::Message;
use crate::error::ended;
use crate::perf::{Event, Events, Plan, explain};
use crate::shared::Shared;
use crate::space::check_debuginfod;
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
pub struct Progress {
    /// Since the start.
    pub seconds: f64,
    /// The samples, or the counted reads, so far.
    pub samples: u64,
    /// Those of clock reads.
    pub reads: u64,
    /// The file whose debug information a debuginfod server is asked for now.
    pub download: Option<String>,
    /// The report of the last interval, once for each.
    pub report: Option<Report>,
}

/// Watches a process. `is_over` is called 50 times a second (500 with [`Options::exact`]), and ends
/// the measurement if it returns true.
///
/// # Errors
/// If nothing can be measured; the text says what to do.
pub fn watch(options: &Options, mut is_over: impl FnMut(&Progress) -> bool) -> Result<Outcome> {
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
        Subject::Command(words) => Some(Target::start(words)?),
        _ if options.exact => return Err(Error::Options("--exact is for a command".into())),
        _ => None,
    };
    let pid = target.as_ref().map(|target| target.pid);
    let cgroup = match &options.subject {
        Subject::Cgroup(path) => {
            let folder = File::open(path).ok().filter(|folder| cgroup_time(folder).is_some());
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
        let (has_executed, own) = (false, Duration::ZERO);
        let mut watch =
            Watch { options, pid, cgroup, events, queue, known, followed, others, has_executed, own };
        drop(shared);
        watch.run(&mut report, target.as_mut(), &mut is_over)?;
        // Without a sender it ends, after the last download.
        let known = watch.known.clone();
        drop(watch);
        while !counting.is_finished() {
            is_over(&Progress::of(&known, report.seconds, None));
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
    /// The last known CPU time of the process, the cgroup or the host.
    own: Duration,
}

impl Watch<'_> {
    fn is_command(&self) -> bool {
        matches!(self.options.subject, Subject::Command(_))
    }

    fn open(&mut self) -> Result<()> {
        let addresses = match self.pid {
            Some(pid) if self.options.exact => breakpoints::addresses(pid)?,
            _ => Vec::new(),
        };
        let mut pids: Vec<_> = self.followed.iter().copied().collect();
        pids.sort_by_key(|pid| Some(*pid) != self.pid);
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
        is_over: &mut impl FnMut(&Progress) -> bool,
    ) -> Result<()> {
        let Options { exact, interval, duration, .. } = *self.options;
        // A guarded command gets its breakpoints when it has executed its program.
        let is_guarded = exact && self.is_command();
        self.follow_family();
        if !is_guarded {
            self.open()?;
        }
        // Those that it started meanwhile. From now on, the kernel reports them.
        self.follow_family();
        // Of a command that waits, the kernel reports the mappings.
        for pid in self.followed.iter().copied().filter(|_| !self.is_command()) {
            self.introduce(pid)?;
        }
        report.sees_all = self.events.sees_all;
        if is_over(&Progress::of(&self.known, 0.0, None)) {
            return Err(Error::Interrupted);
        }
        if !self.read_time() && target.is_none() {
            return Err(Error::Unsupported("cannot read /proc/stat: is /proc mounted?".into()));
        }
        let start = Instant::now();
        let (mut since, mut before) = (start, self.cpu_time());
        if let Some(target) = &mut target {
            target.go(exact)?;
        }
        let default = (!self.is_command() && interval.is_none()).then_some(10);
        let end = duration.or(default).map(|seconds| start + Duration::from_secs(seconds.into()));
        let interval = interval.filter(|_| !exact).map(|seconds| Duration::from_secs(seconds.into()));
        let (made, parts) = channel();
        let over = loop {
            sleep(if exact { TICK / 10 } else { TICK });
            let part = parts.try_recv().ok();
            let is_over = is_over(&Progress::of(&self.known, start.elapsed().as_secs_f64(), part));
            // The host has always a time, and reading it takes long if there are many CPUs.
            let has_time = matches!(self.options.subject, Subject::Host) || self.read_time();
            let has_ended = target.as_ref().map_or(!has_time, |target| target.has_ended());
            // Another program has its vDSO, and its breakpoints, elsewhere.
            let is_other = exact && !is_guarded && self.has_executed;
            let now = Instant::now();
            if has_ended || is_over || is_other || end.is_some_and(|end| now >= end) {
                break now;
            }
            self.drain(false);
            if interval.is_some_and(|interval| now >= since + interval) {
                let used = self.cpu_time();
                let mut part = report.of_part(now - since, used.saturating_sub(before));
                (since, before) = (now, used);
                let made = made.clone();
                let finish = move |found| {
                    part.finish(found);
                    let _ = made.send(part);
                };
                // It fails only if the other thread has panicked.
                let _ = self.queue.send(Message::Take(Box::new(finish)));
            }
            // A command that executed a program waits until this has its breakpoints.
            while let Some((target, _waits)) = target.as_deref_mut().and_then(Target::executed) {
                self.drain(true);
                report.counted += self.events.executions();
                // They occupy all breakpoints.
                self.events = Events::default();
                self.introduce(target.pid)?;
                self.open()?;
                target.gate = None;
            }
        };
        *report = report.of_part(over - since, self.cpu_time().saturating_sub(before));
        report.counted += self.events.executions();
        self.drain(true);
        if let Some(target) = target {
            // A command that waits for its breakpoints runs now.
            target.gate = None;
            if let Some(guard) = &mut target.guard {
                report.swallowed = guard.swallowed.load(Relaxed);
                guard.executed = None;
            }
        }
        Ok(())
    }

    /// Sends the name and the mappings of a process that runs. Those of a descendant may be hidden.
    fn introduce(&self, pid: u32) -> Result<()> {
        self.send(Event::Named(pid, proc::name(pid), true));
        let mappings = match mapping::of_process(pid) {
            Err(error) if self.pid == Some(pid) => return Err(error),
            mappings => mappings.into_iter().flatten(),
        };
        mappings.for_each(|mapping| self.send(Event::Mapped(pid, mapping)));
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

    /// Reads the CPU time of the process, the cgroup or the host. Returns whether it has one. That
    /// of a process or a cgroup that ended is gone, so the last one is kept.
    fn read_time(&mut self) -> bool {
        let own = match (self.pid, &self.cgroup) {
            (Some(pid), _) => self.time_of(pid),
            (_, Some(folder)) => cgroup_time(folder),
            _ => proc::cpu_time_of_host(),
        };
        self.own = own.unwrap_or(self.own);
        own.is_some()
    }

    /// Returns the CPU time of all that is watched. The time of a descendant that ended is in that
    /// of the parent that waited for it.
    fn cpu_time(&mut self) -> Duration {
        self.read_time();
        let others = self.followed.iter().filter(|pid| Some(**pid) != self.pid);
        self.own + others.filter_map(|pid| self.time_of(*pid)).sum()
    }

    /// Returns the CPU time of a process. Without rights there are no samples of the kernel.
    fn time_of(&self, pid: u32) -> Option<Duration> {
        let in_user_space = !self.events.sees_all && !self.options.exact;
        proc::cpu_time(pid, self.options.follows(), in_user_space)
    }
}

impl Progress {
    fn of(known: &Weak<Shared>, seconds: f64, report: Option<Report>) -> Self {
        let known = known.upgrade();
        let known = known.as_deref();
        let number = |of: fn(&Shared) -> &AtomicU64| known.map_or(0, |known| of(known).load(Relaxed));
        Self {
            seconds,
            samples: number(|known| &known.samples),
            reads: number(|known| &known.reads),
            download: known.and_then(|known| known.download.lock().ok()?.clone()),
            report,
        }
    }
}

/// Returns the CPU time of a cgroup, which only version 2 has in this file. One that was removed
/// has none, also if another one has its path.
fn cgroup_time(folder: &File) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/self/fd/{}/cpu.stat", folder.as_raw_fd())).ok()?;
    let micros = stat.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
    Some(Duration::from_micros(micros.parse().ok()?))
}
