//! A measurement, from its start to its report.

use std::fs::{self, File};
use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::perf::{Events, Scope};
use crate::tally::Tally;
use crate::target::Target;
use crate::{Error, Options, Progress, Report, Result, Subject, proc, trap};

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

/// Watches a process. `progress` gets how far the measurement is once a second, and None at other
/// times and at the end; it ends the measurement by `Break`.
///
/// # Errors
/// Says what is missing, and what to do.
pub fn watch(
    options: &Options,
    progress: impl FnMut(Option<Progress>) -> ControlFlow<()>,
) -> Result<Outcome> {
    let mut target = match &options.subject {
        Subject::Process(_) if options.exact && !options.may_end_process => {
            return Err(
                "--exact can end a process that was not started here: start it by `vdso-who --exact -- \
                        COMMAND`, or add --may-end-process"
                    .into(),
            );
        }
        Subject::Process(pid) => Some(Target::attach(*pid)?),
        Subject::Command(words) => Some(Target::start(words)?),
        _ if options.exact => return Err("--exact is for a command".into()),
        _ => None,
    };
    let mut watch = Watch::new(options, target.as_ref().map(|target| target.pid))?;
    if let Some(target) = &mut target {
        target.go(options.exact)?;
    }
    watch.run(target.as_mut(), progress)?;
    let mut report = watch.report;
    report.finish(&watch.tally);
    Ok(Outcome { report, target })
}

/// A measurement.
struct Watch<'a> {
    options: &'a Options,
    scope: Scope,
    events: Events,
    tally: Tally,
    report: Report,
}

impl<'a> Watch<'a> {
    /// Finds out what is missing, and opens the events.
    fn new(options: &'a Options, pid: Option<u32>) -> Result<Self> {
        let scope = match (&options.subject, pid) {
            (Subject::Cgroup(path), _) => {
                Scope::Cgroup(File::open(path).map_err(|error| format!("{}: {error}", path.display()))?)
            }
            (_, Some(pid)) => Scope::Process(pid),
            _ => Scope::Host,
        };
        let trap_ns = if options.exact { Some(trap::test_host()?) } else { None };
        let tally = Tally::new(pid, trap_ns, options.folded)?;
        let report = Report::new(options, pid, trap_ns);
        let mut watch = Self { options, scope, events: Events::default(), tally, report };
        watch.open()?;
        watch.report.sees_kernel = watch.events.sees_kernel;
        watch.report.sees_every_thread = watch.events.sees_every_thread;
        Ok(watch)
    }

    fn open(&mut self) -> Result<()> {
        let follows = matches!(self.options.subject, Subject::Command(_));
        let opened = match self.scope {
            Scope::Process(pid) if self.options.exact => {
                let addresses = trap::addresses(self.tally.space(pid)?)?;
                Events::count(pid, &addresses)
            }
            _ => Events::sample(&self.scope, 1_000_000_000 / u64::from(self.options.frequency), follows),
        };
        self.events = opened.map_err(|error| match self.scope {
            Scope::Process(pid) if !follows => format!("process {pid}: {}", explain(&error)).into(),
            _ => explain(&error),
        })?;
        // Before a command runs, so that its first reads are counted, too.
        self.events.enable_breakpoints();
        Ok(())
    }

    fn run(
        &mut self,
        mut target: Option<&mut Target>,
        mut progress: impl FnMut(Option<Progress>) -> ControlFlow<()>,
    ) -> Result<()> {
        let start = Instant::now();
        let cpu_before = self.cpu_time(target.as_deref()).unwrap_or_default();
        let default = (!matches!(self.options.subject, Subject::Command(_))).then_some(10);
        let end = self.options.duration.or(default);
        let end = end.map(|seconds| start + Duration::from_secs(seconds.into()));
        loop {
            sleep(if self.options.exact { TICK / 10 } else { TICK });
            let has_ended = target.as_ref().is_some_and(|target| target.has_ended());
            // A process that ended has no clock.
            if let Some(now) = target.as_ref().and_then(|target| target.cpu_time()) {
                self.report.cpu = now.saturating_sub(cpu_before);
            }
            self.drain()?;
            if let Some(target) = target.as_deref_mut() {
                self.follow(target)?;
            }
            self.report.time = start.elapsed();
            let is_stopped = progress(self.progress()).is_break();
            let is_over = end.is_some_and(|end| Instant::now() >= end);
            if has_ended || is_over || is_stopped {
                break;
            }
        }
        if let Some(now) = self.cpu_time(target.as_deref()) {
            self.report.cpu = now.saturating_sub(cpu_before);
        }
        self.events.disable_breakpoints();
        self.drain()?;
        self.report.counted += self.events.executions();
        if let Some(guard) = target.and_then(|target| target.guard.as_mut()) {
            self.report.swallowed = guard.swallowed.load(Ordering::Relaxed);
            guard.executed = None;
        }
        let _ = progress(None);
        Ok(())
    }

    fn drain(&mut self) -> Result<()> {
        let programs = self.tally.programs;
        let only = match (&self.options.subject, &self.scope) {
            (Subject::Process(_), Scope::Process(pid)) => Some(*pid),
            _ => None,
        };
        for (time, event) in self.events.drain(only) {
            self.tally.add(time, event);
        }
        let is_guarded = matches!(self.options.subject, Subject::Command(_));
        if self.options.exact && !is_guarded && self.tally.programs != programs {
            self.reopen()
        } else {
            Ok(())
        }
    }

    /// Sets the breakpoints of another program that a command executes. It waits meanwhile.
    fn follow(&mut self, target: &mut Target) -> Result<()> {
        let Some(executed) = target.guard.as_mut().and_then(|guard| guard.executed.as_mut()) else {
            return Ok(());
        };
        while let Ok(_waits) = executed.try_recv() {
            self.drain()?;
            self.reopen()?;
        }
        Ok(())
    }

    /// The vDSO has another address. A process that ended meanwhile has none.
    fn reopen(&mut self) -> Result<()> {
        self.report.counted += self.events.executions();
        // They occupy all breakpoints.
        self.events = Events::default();
        self.open()
    }

    /// The CPU time of all that is watched.
    fn cpu_time(&self, target: Option<&Target>) -> Option<Duration> {
        match (&self.options.subject, target) {
            (Subject::Cgroup(path), _) => {
                let stat = fs::read_to_string(path.join("cpu.stat")).ok()?;
                let micros = stat.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
                Some(Duration::from_micros(micros.parse().ok()?))
            }
            (_, None) => proc::cpu_time_of_host(),
            (_, Some(_)) if self.tally.pids().count() > 1 => {
                Some(self.tally.pids().filter_map(proc::cpu_time_with_children).sum())
            }
            (_, Some(target)) => target.cpu_time(),
        }
    }

    fn progress(&self) -> Option<Progress> {
        let seconds = self.report.time.as_secs();
        (seconds >= 3 && self.report.time.subsec_millis() < 100).then_some(Progress {
            seconds,
            samples: self.tally.samples,
            reads: self.tally.reads,
        })
    }
}

/// Says what is missing, and what to do.
pub(crate) fn explain(error: &io::Error) -> Error {
    let file = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let paranoid = file("/proc/sys/kernel/perf_event_paranoid");
    let is_filtered = file("/proc/self/status").lines().any(|line| line == "Seccomp:\t2");
    let what = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES | libc::ENOSYS) if is_filtered => {
            "a seccomp filter denies perf_event_open(2): run it outside of the container, or allow the call (`docker \
             run --cap-add PERFMON --security-opt seccomp=unconfined`)"
                .into()
        }
        Some(libc::EPERM | libc::EACCES) => format!(
            "perf_event_open(2) is denied (kernel.perf_event_paranoid is {}): run it as root or with CAP_PERFMON and \
             CAP_SYS_PTRACE, or run `sysctl kernel.perf_event_paranoid=2` for your own processes, or 0 for --all",
            paranoid.trim()
        ),
        Some(libc::ENOSYS) => "this kernel has no perf_event_open(2)".into(),
        Some(libc::ENOSPC) => "all breakpoints of the CPU are in use: end the debugger, or omit --exact".into(),
        Some(libc::EOPNOTSUPP | libc::ENODEV | libc::ENOENT) => {
            "this machine has no breakpoints that count: omit --exact".into()
        }
        Some(libc::EMFILE | libc::ENFILE) => {
            "there are too many threads and CPUs for the limit of open files: raise it with `ulimit -Hn`, or run it as \
             root or with CAP_PERFMON, which need one file for each CPU"
                .into()
        }
        Some(libc::ESRCH) => "there is no such process, it ended, or it is a kernel thread".into(),
        None => error.to_string(),
        Some(_) => format!("perf_event_open(2) failed: {error}"),
    };
    what.into()
}
