//! A measurement, from its start to its report.

use std::collections::HashSet;
use std::fs::{self, File};
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, ScopedJoinHandle, sleep};
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;

use crate::arguments::Arguments;
use crate::callers::{Findings, Message};
use crate::perf::{Event, Events, Plan, explain};
use crate::progress::Progress;
use crate::report::Report;
use crate::space::check_debuginfod;
use crate::target::Target;
use crate::{Result, breakpoints, callers, ended, mapping, proc};

/// How long the buffers may fill; that of counted reads a tenth of it.
const TICK: Duration = Duration::from_millis(20);

/// If more records wait for their names, the next ones stay in the buffers. Each has 8 KiB.
const MOST_WAITING: usize = 1 << 10;

/// Four times the memory that names may take, for what is not counted there.
const MOST_MEMORY: u64 = 8 << 30;

/// Returns the report of a measurement, and the process, which may still run.
///
/// A command ignores the signals in `ignored`. `show` gets the report of each interval. `is_over`
/// is called 50 times a second (500 with --exact) with the seconds since the start, and ends the
/// measurement if it returns true.
///
/// # Errors
/// If nothing can be measured; the text says what to do.
pub(crate) fn watch(
    arguments: &Arguments,
    ignored: &[Signal],
    show: &(dyn Fn(&Report) + Sync),
    is_over: &mut dyn FnMut(&Progress, f64) -> bool,
) -> Result<(Report, Option<Target>)> {
    proc::check_namespace()?;
    if arguments.debuginfod {
        check_debuginfod()?;
    }
    let mut target = match arguments.pid {
        Some(_) if arguments.exact && !arguments.may_end_process => {
            let what = "--exact can end a process that was not started here: start it by `vdso-who --exact -- \
                        COMMAND`, or add --may-end-process";
            return Err(what.into());
        }
        Some(pid) => Some(Target::attach(pid)?),
        None if arguments.has_command() => Some(Target::start(&arguments.command, ignored)?),
        None => None,
    };
    // A command has the caller's limits, because it was started before.
    set_limits();
    let pid = target.as_ref().map(|target| target.pid);
    let is_cgroup = |path: &PathBuf| {
        let folder = File::open(path)
            .ok()
            .filter(|folder| cgroup_time(folder).is_some());
        folder.ok_or_else(|| {
            format!(
                "{} is no cgroup of version 2: `mount -t cgroup2` shows where these are",
                path.display()
            )
        })
    };
    let cgroup = arguments.cgroup.as_ref().map(is_cgroup).transpose()?;
    let trap_ns = if arguments.exact {
        Some(breakpoints::test_host()?)
    } else {
        None
    };
    let mut report = Report::new(arguments, pid, trap_ns);
    let progress = Arc::<Progress>::default();
    let found = thread::scope(|scope| {
        let (queue, messages) = channel();
        let counting = scope.spawn(|| callers::count(arguments, pid, messages, &progress));
        let (events, followed, others) =
            (Events::default(), pid.into_iter().collect(), HashSet::new());
        let mut watch = Watch {
            arguments,
            pid,
            cgroup,
            events,
            queue,
            progress: &progress,
            counting,
            show,
            followed,
            others,
            has_executed: false,
            own: Duration::ZERO,
        };
        watch.run(&mut report, target.as_mut(), is_over)?;
        // Without a sender the other thread ends, after the last download.
        let Watch {
            counting, queue, ..
        } = watch;
        drop(queue);
        while !counting.is_finished() {
            is_over(&progress, report.seconds);
            sleep(TICK);
        }
        counting.join().map_err(ended)
    })?;
    report.finish(found);
    Ok((report, target))
}

/// Limits the memory, and raises the limit of open files: each event is one.
fn set_limits() {
    if let Ok((memory, most)) = getrlimit(Resource::RLIMIT_AS) {
        let _ = setrlimit(Resource::RLIMIT_AS, memory.min(MOST_MEMORY), most);
    }
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

/// A measurement. Another thread counts the records and looks up their names, which can take long.
/// So this one is in time to take the records out of the buffers, and to see the process end.
struct Watch<'a, 'scope> {
    arguments: &'a Arguments,
    pid: Option<u32>,
    cgroup: Option<File>,
    events: Events,
    queue: Sender<Message<'a>>,
    progress: &'a Progress,
    /// The other thread.
    counting: ScopedJoinHandle<'scope, Findings>,
    show: &'a (dyn Fn(&Report) + Sync),
    /// The process that is watched, if it is one, and its descendants.
    followed: HashSet<u32>,
    /// Processes that are not watched. Their samples are not copied.
    others: HashSet<u32>,
    /// Whether the process executed another program.
    has_executed: bool,
    /// The last known CPU time of the process, the cgroup or the host.
    own: Duration,
}

impl Watch<'_, '_> {
    fn open(&mut self) -> Result<()> {
        let addresses = match self.pid {
            Some(pid) if self.arguments.exact => breakpoints::addresses(pid)?,
            _ => Vec::new(),
        };
        let mut pids: Vec<_> = self.followed.iter().copied().collect();
        pids.sort_by_key(|pid| Some(*pid) != self.pid);
        let plan = Plan {
            pids: &pids,
            cgroup: self.cgroup.as_ref(),
            follows: self.arguments.follows(),
            period: 1_000_000_000 / u64::from(self.arguments.frequency),
            addresses: &addresses,
        };
        self.events = Events::open(&plan).map_err(|error| explain(&error, &plan))?;
        Ok(())
    }

    fn run(
        &mut self,
        report: &mut Report,
        mut target: Option<&mut Target>,
        is_over: &mut dyn FnMut(&Progress, f64) -> bool,
    ) -> Result<()> {
        let Arguments {
            exact,
            interval,
            duration,
            ..
        } = *self.arguments;
        // A guarded command gets its breakpoints when it has executed its program.
        let is_guarded = exact && self.arguments.has_command();
        self.follow_family();
        if !is_guarded {
            self.open()?;
        }
        // Those that it started meanwhile. From now on, the kernel reports them.
        self.follow_family();
        // Of a command that waits, the kernel reports the mappings.
        for pid in self
            .followed
            .iter()
            .copied()
            .filter(|_| !self.arguments.has_command())
        {
            self.introduce(pid)?;
        }
        report.sees_all = self.events.sees_all;
        if is_over(self.progress, 0.0) {
            return Err("it was interrupted before it began".into());
        }
        // A process that was not started here may have ended.
        if !self.read_time() && (self.pid.is_none() || self.arguments.has_command()) {
            return Err("cannot read the CPU time: is /proc mounted?".into());
        }
        let start = Instant::now();
        let (mut since, mut before) = (start, self.cpu_time());
        if let Some(target) = &mut target {
            target.go(exact)?;
        }
        let default = (!self.arguments.has_command() && interval.is_none()).then_some(10);
        let end = duration
            .or(default)
            .map(|seconds| start + Duration::from_secs(seconds.into()));
        let interval = interval.map(|seconds| Duration::from_secs(seconds.into()));
        let over = loop {
            sleep(if exact { TICK / 10 } else { TICK });
            let is_interrupted = is_over(self.progress, start.elapsed().as_secs_f64());
            // The host has always a time, and reading it takes long if there are many CPUs.
            let has_time = self.arguments.all || self.read_time();
            let has_ended = target
                .as_ref()
                .map_or(!has_time, |target| target.has_ended());
            // Another program has its vDSO, and its breakpoints, elsewhere.
            let is_other = exact && !is_guarded && self.has_executed;
            let now = Instant::now();
            if has_ended || is_interrupted || is_other || end.is_some_and(|end| now >= end) {
                break now;
            }
            self.drain(false);
            if interval.is_some_and(|interval| now >= since + interval) {
                let used = self.cpu_time();
                let mut part = report.of_part(now - since, used.saturating_sub(before));
                (since, before) = (now, used);
                let show = self.show;
                let finish = move |found| {
                    part.finish(found);
                    show(&part);
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
        let pid = self
            .pid
            .filter(|_| self.arguments.follows() && !self.arguments.has_command());
        self.followed.extend(pid.into_iter().flat_map(proc::family));
    }

    /// Takes the records out of the buffers, unless too many wait to be counted. Then it waits for
    /// that if `waits` is set, or leaves the records there.
    fn drain(&mut self, waits: bool) {
        while self.progress.waiting.load(Relaxed) > MOST_WAITING {
            if !waits || self.counting.is_finished() {
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
                let is_watched = of(parent) && (self.pid.is_none() || self.arguments.follows());
                // The number may have been that of another process.
                self.others.remove(pid);
                self.followed.remove(pid);
                self.followed
                    .extend(self.pid.filter(|_| is_watched).map(|_| *pid));
                is_watched
            }
            Event::Named(pid, _, has_executed) => {
                self.has_executed |= *has_executed && self.pid == Some(*pid);
                of(pid)
            }
        }
    }

    fn send(&self, event: Event) {
        self.progress.waiting.fetch_add(1, Relaxed);
        // It fails only if the other thread has panicked.
        let _ = self.queue.send(Message::Event(event));
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
        let in_user_space = !self.events.sees_all && !self.arguments.exact;
        proc::cpu_time(pid, self.arguments.follows(), in_user_space)
    }
}

/// Returns the CPU time of a cgroup, which only version 2 has in this file. One that was removed
/// has none, also if another one has its path.
fn cgroup_time(folder: &File) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/self/fd/{}/cpu.stat", folder.as_raw_fd())).ok()?;
    let micros = stat
        .lines()
        .find_map(|line| line.strip_prefix("usage_usec "))?;
    Some(Duration::from_micros(micros.parse().ok()?))
}
