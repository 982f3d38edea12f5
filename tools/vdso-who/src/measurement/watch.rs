//! The loop of a measurement. It takes the records out of the kernel's buffers until the
//! measurement is over.

use std::fs::File;
use std::mem;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::counter::Counter;
use super::followed::Followed;
use super::{cgroup_time, check_open_files};
use crate::arguments::Arguments;
use crate::error::Result;
use crate::perf::{Event, Events, Plan, explain};
use crate::report::Report;
use crate::screen::Observer;
use crate::target::Target;
use crate::{breakpoints, mapping, proc};

/// For how long the buffers fill before the records are taken out. With --exact, it is a tenth of
/// this.
pub(super) const TICK: Duration = Duration::from_millis(20);

/// How often CPUs that came online are looked for.
const CPU_CHECK: Duration = Duration::from_millis(500);

/// How long a measurement takes if neither a command nor an option determines its end.
const DEFAULT_SECONDS: u32 = 10;

/// A measurement that runs.
pub(super) struct Watch<'a, 'scope> {
    arguments: &'a Arguments,
    observer: &'a dyn Observer,
    target: Option<&'a mut Target>,
    cgroup: Option<&'a File>,
    pid: Option<u32>,
    events: Events,
    followed: Followed,
    counter: Counter<'a, 'scope>,
    /// The last known CPU time of the process, the cgroup or the host.
    own: Duration,
}

/// The times of a measurement.
struct Clock {
    start: Instant,
    end: Option<Instant>,
    interval: Option<Duration>,
    /// The start of the interval, and the CPU time at that moment.
    since: Instant,
    before: Duration,
    /// The last look for CPUs that came online.
    looked_at_cpus: Instant,
    /// For how long in this interval CPUs may have run while they had no event.
    unwatched: Duration,
}

impl Clock {
    fn new(arguments: &Arguments, before: Duration) -> Self {
        let start = Instant::now();
        let seconds = |seconds: u32| Duration::from_secs(seconds.into());
        let mut duration = arguments.duration;
        let has_end = arguments.has_command() || arguments.interval.is_some();
        if duration.is_none() && !has_end {
            duration = Some(DEFAULT_SECONDS);
        }
        Self {
            start,
            end: duration.map(|duration| start + seconds(duration)),
            interval: arguments.interval.map(seconds),
            since: start,
            before,
            looked_at_cpus: start,
            unwatched: Duration::ZERO,
        }
    }

    fn has_ended(&self, now: Instant) -> bool {
        self.end.is_some_and(|end| now >= end)
    }

    fn is_interval_over(&self, now: Instant) -> bool {
        match self.interval {
            Some(interval) => now >= self.since + interval,
            None => false,
        }
    }
}

impl<'a: 'scope, 'scope> Watch<'a, 'scope> {
    pub(super) fn new(
        arguments: &'a Arguments,
        target: Option<&'a mut Target>,
        cgroup: Option<&'a File>,
        observer: &'a dyn Observer,
        counter: Counter<'a, 'scope>,
    ) -> Self {
        let pid = target.as_ref().map(|target| target.pid);
        Self {
            arguments,
            observer,
            target,
            cgroup,
            pid,
            events: Events::default(),
            followed: Followed::new(arguments, pid),
            counter,
            own: Duration::ZERO,
        }
    }

    /// Measures, and returns the report of the last interval or, without --interval, of the whole
    /// measurement.
    pub(super) fn run(mut self, mut report: Report) -> Result<Report> {
        self.begin()?;
        report.system_wide = self.events.system_wide;
        let mut clock = Clock::new(self.arguments, self.cpu_time());
        if let Some(target) = &mut self.target {
            target.go(self.arguments.exact)?;
        }
        let over = loop {
            sleep(self.tick());
            let now = Instant::now();
            if self.is_over(&clock, now) {
                break now;
            }
            let is_drained = self.drain();
            self.follow_cpus(&mut clock, now);
            // If the counting thread is behind, for example after a suspend, the records of this
            // interval are still in the buffers and would be counted in the next interval. So the
            // interval goes on until they have been taken out.
            if is_drained && clock.is_interval_over(now) {
                self.report_interval(&report, &mut clock, now);
            }
            self.watch_executed_programs(&mut report)?;
        };
        let used = self.cpu_time().saturating_sub(clock.before);
        let executions = self.events.executions();
        self.drain_all();
        let mut report = report.of_part(over - clock.since, used);
        report.unwatched = clock.unwatched;
        report.counted += executions;
        if let Some(target) = &mut self.target {
            report.swallowed = target.release();
        }
        let found = self.counter.finish(self.observer, report.seconds)?;
        report.finish(found);
        Ok(report)
    }

    fn tick(&self) -> Duration {
        if self.arguments.exact {
            TICK / 10
        } else {
            TICK
        }
    }

    /// Opens the events, and sends the names and the mappings of the processes that run.
    fn begin(&mut self) -> Result<()> {
        self.followed.add_family();
        // With --exact, a command gets its breakpoints only when it has executed its program.
        if !self.arguments.exact {
            self.open()?;
        }
        // Adds the processes that were started while the events were being opened. From now on, the
        // kernel reports each new process.
        self.followed.add_family();
        // A command has not executed its program yet, so the kernel will report its mappings.
        if !self.arguments.has_command() {
            for pid in self.followed.pids() {
                self.introduce(pid)?;
            }
        }
        if self.observer.is_over(&self.counter.progress, 0.0) {
            return Err("the measurement was interrupted before it began".into());
        }
        // A process that this program has not started may have ended already, so it may have no CPU
        // time.
        let must_have_time = self.pid.is_none() || self.arguments.has_command();
        if !self.read_time() && must_have_time {
            return Err("cannot read the CPU time: is /proc mounted?".into());
        }
        Ok(())
    }

    fn open(&mut self) -> Result<()> {
        let addresses = match self.pid {
            Some(pid) if self.arguments.exact => breakpoints::addresses(pid)?,
            _ => Vec::new(),
        };
        let pids = self.followed.pids();
        let plan = self.plan(&pids, &addresses);
        self.events = Events::open(&plan).map_err(|error| explain(&error, &plan))?;
        check_open_files()
    }

    fn plan<'b>(&self, pids: &'b [u32], addresses: &'b [u64]) -> Plan<'b>
    where
        'a: 'b,
    {
        Plan {
            pids,
            cgroup: self.cgroup,
            follows: self.arguments.follows(),
            period: 1_000_000_000 / u64::from(self.arguments.frequency()),
            addresses,
        }
    }

    /// Looks for CPUs that came online, if it is time to.
    fn follow_cpus(&mut self, clock: &mut Clock, now: Instant) {
        // While the counting thread is behind, records are left in the buffers. If a CPU went
        // offline meanwhile, `Events::follow_cpus` would close its event, and the records in its
        // buffer would be lost. So the call is put off until the counting thread has caught up.
        if now < clock.looked_at_cpus + CPU_CHECK || self.counter.is_behind() {
            return;
        }
        let plan = self.plan(&[], &[]);
        clock.unwatched += self.events.follow_cpus(&plan, clock.looked_at_cpus);
        clock.looked_at_cpus = now;
    }

    /// Sends the name and the mappings of a running process. It is not an error if the mappings of
    /// a descendant cannot be read.
    fn introduce(&self, pid: u32) -> Result<()> {
        self.counter.send(Event::Named(pid, proc::name(pid), true));
        match mapping::of_process(pid) {
            Err(error) if self.pid == Some(pid) => return Err(error),
            Err(_) => {}
            Ok(mappings) => {
                for mapping in mappings {
                    self.counter.send(Event::Mapped(pid, mapping));
                }
            }
        }
        Ok(())
    }

    fn is_over(&mut self, clock: &Clock, now: Instant) -> bool {
        let seconds = (now - clock.start).as_secs_f64();
        let is_interrupted = self.observer.is_over(&self.counter.progress, seconds);
        // The host always has a CPU time. It is not read here, because that takes long if there are
        // many CPUs.
        let has_time = self.arguments.all || self.read_time();
        let has_ended = match &self.target {
            Some(target) => target.has_ended(),
            None => !has_time,
        };
        has_ended || is_interrupted || clock.has_ended(now)
    }

    /// Lets the observer show the report of an interval.
    fn report_interval(&mut self, report: &Report, clock: &mut Clock, now: Instant) {
        let used = self.cpu_time();
        let mut part = report.of_part(now - clock.since, used.saturating_sub(clock.before));
        part.is_interval = true;
        part.unwatched = mem::take(&mut clock.unwatched);
        clock.since = now;
        clock.before = used;
        let observer = self.observer;
        self.counter.take(move |found| {
            part.finish(found);
            observer.interval(&part);
        });
    }

    /// Sets breakpoints in a command that has executed a program. The command does not run before
    /// it has them.
    fn watch_executed_programs(&mut self, report: &mut Report) -> Result<()> {
        while let Some(target) = &mut self.target {
            let Some(_waits) = target.executed() else {
                break;
            };
            let pid = target.pid;
            self.drain_all();
            report.counted += self.events.executions();
            // The old events must be closed first, because they occupy all breakpoints.
            self.events = Events::default();
            self.introduce(pid)?;
            self.open()?;
            if let Some(target) = &mut self.target {
                target.gate = None;
            }
        }
        Ok(())
    }

    /// Takes the records out of the buffers, unless too many wait to be counted. Returns whether it
    /// took them.
    fn drain(&mut self) -> bool {
        if self.counter.is_behind() {
            return false;
        }
        for event in self.events.drain(&self.followed.unwatched_pids) {
            if self.followed.takes(&event) {
                self.counter.send(event);
            }
        }
        true
    }

    /// Takes all records out of the buffers.
    fn drain_all(&mut self) {
        self.counter.catch_up();
        self.drain();
    }

    /// Reads the CPU time of the process, the cgroup or the host. Returns whether it could be read.
    /// The CPU time of a process or a cgroup that has ended can no longer be read, so the last
    /// known value is kept.
    fn read_time(&mut self) -> bool {
        let own = match (self.pid, self.cgroup) {
            (Some(pid), _) => self.time_of(pid),
            (None, Some(cgroup)) => cgroup_time(cgroup),
            (None, None) => proc::cpu_time_of_host(),
        };
        if let Some(own) = own {
            self.own = own;
        }
        own.is_some()
    }

    /// Returns the CPU time of all watched processes. The time of a descendant that ended is
    /// included in the time of the parent that waited for it.
    fn cpu_time(&mut self) -> Duration {
        self.read_time();
        let mut sum = self.own;
        for pid in self.followed.children() {
            sum += self.time_of(pid).unwrap_or_default();
        }
        sum
    }

    /// Returns the CPU time of a process. Without privileges there are no samples in the kernel, so
    /// only the time in user space counts.
    fn time_of(&self, pid: u32) -> Option<Duration> {
        let in_user_space = !self.events.system_wide && !self.arguments.exact;
        proc::cpu_time(pid, self.arguments.follows(), in_user_space)
    }
}
