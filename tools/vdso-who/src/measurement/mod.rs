//! A measurement, from its start to its report.

mod counter;
mod followed;
mod watch;

use std::fs::{self, File};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::thread;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::address_space::check_debuginfod;
use crate::arguments::Arguments;
use crate::error::{Result, is_limit};
use crate::interrupt::Interrupt;
use crate::report::Report;
use crate::screen::Observer;
use crate::target::Target;
use crate::{breakpoints, console, perf, proc};
use counter::Counter;
use watch::Watch;

/// The limit on the address space of this program. It is four times the limit on private memory
/// that is checked when names are read ([`has_room`](crate::address_space::has_room)), because the
/// address space contains more than private memory.
const MOST_ADDRESS_SPACE: u64 = 8 << 30;

/// The number of files that this program must still be able to open after it has opened the events:
/// files of /proc, debug files, and the files of [`Files`](crate::address_space::Files).
const SPARE_FILES: usize = 24;

/// A measurement. A command does not run before [`Self::run`].
pub(crate) struct Measurement<'a> {
    arguments: &'a Arguments,
    interrupt: &'a Interrupt,
    /// The watched process. None if a cgroup or the host is watched.
    target: Option<Target>,
    cgroup: Option<File>,
    /// The cost of a counted read, with --exact.
    trap_ns: Option<u64>,
}

impl<'a> Measurement<'a> {
    /// Finds the processes to watch, or starts the command.
    ///
    /// # Errors
    /// If nothing can be measured; the text says what to do.
    pub(crate) fn open(arguments: &'a Arguments, interrupt: &'a Interrupt) -> Result<Self> {
        proc::check_namespace()?;
        if arguments.debuginfod {
            check_debuginfod()?;
        }
        let target = match arguments.pid {
            Some(pid) => Some(Target::attach(pid)?),
            None if arguments.has_command() => {
                Some(Target::start(&arguments.command, &interrupt.ignored)?)
            }
            None => None,
        };
        // A command keeps the limits of its caller, because its process was forked above, before
        // this program changes its own limits.
        set_limits();
        let cgroup = match &arguments.cgroup {
            Some(path) => Some(open_cgroup(path)?),
            None => None,
        };
        let trap_ns = if arguments.exact {
            Some(breakpoints::test_host()?)
        } else {
            None
        };
        Ok(Self {
            arguments,
            interrupt,
            target,
            cgroup,
            trap_ns,
        })
    }

    /// Measures until the process ends, the time is over, or the observer asks for the end.
    pub(crate) fn run(&mut self, observer: &dyn Observer) -> Result<Report> {
        let arguments = self.arguments;
        let target = self.target.as_mut();
        let pid = target.as_ref().map(|target| target.pid);
        let report = Report::new(arguments, pid, self.trap_ns);
        thread::scope(|scope| {
            let counter = Counter::start(scope, arguments, pid);
            let cgroup = self.cgroup.as_ref();
            Watch::new(arguments, target, cgroup, observer, counter).run(report)
        })
    }

    /// Waits for the command, if there is one, and returns its status.
    pub(crate) fn wait_for_command(&mut self) -> Result<u8> {
        let Some(target) = &mut self.target else {
            return Ok(0);
        };
        if target.is_running() {
            console::say("the measurement is over; waiting for the command to end");
        }
        target.wait(|| self.interrupt.is_termination())
    }
}

/// Limits the memory of this program, and raises its limit on open files, because each event is an
/// open file.
fn set_limits() {
    if let Ok((memory, most)) = getrlimit(Resource::RLIMIT_AS) {
        let _ = setrlimit(Resource::RLIMIT_AS, memory.min(MOST_ADDRESS_SPACE), most);
    }
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

/// Checks that enough files can still be opened after the events.
///
/// # Errors
/// If the limit on open files does not leave room for `SPARE_FILES` more files. Without that room,
/// this program could not read the mappings and the CPU times of processes, and would find no names
/// of callers.
fn check_open_files() -> Result<()> {
    let mut files = Vec::new();
    for _ in 0..SPARE_FILES {
        match File::open("/dev/null") {
            Ok(file) => files.push(file),
            Err(error) if is_limit(&error) => return Err(perf::limited().into()),
            // There is no /dev/null to test with.
            Err(_) => break,
        }
    }
    Ok(())
}

fn open_cgroup(path: &Path) -> Result<File> {
    if let Ok(directory) = File::open(path) {
        if cgroup_time(&directory).is_some() {
            return Ok(directory);
        }
    }
    let path = path.display();
    Err(format!(
        "{path} is not a cgroup v2 directory: `mount -t cgroup2` shows where these directories are"
    )
    .into())
}

/// Returns the CPU time of a cgroup. Returns `None` for a directory of cgroup v1, which does not
/// report this time, and for a cgroup that was removed, even if a new one has the same path.
fn cgroup_time(directory: &File) -> Option<Duration> {
    let path = format!("/proc/self/fd/{}/cpu.stat", directory.as_raw_fd());
    let stat = fs::read_to_string(path).ok()?;
    for line in stat.lines() {
        if let Some(micros) = line.strip_prefix("usage_usec ") {
            return Some(Duration::from_micros(micros.parse().ok()?));
        }
    }
    None
}
