//! What is watched, and how.

use std::ffi::OsString;
use std::path::PathBuf;

/// What [`watch`](crate::watch()) watches.
#[derive(Clone, Debug)]
pub enum Subject {
    /// A process.
    Process(u32),
    /// A program and its arguments, to start.
    Command(Vec<OsString>),
    /// The processes of a cgroup, by its folder in /sys/fs/cgroup.
    Cgroup(PathBuf),
    /// All processes.
    Host,
}

/// Which processes share a row of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum GroupBy {
    /// None: each has a row of its own.
    Process,
    /// Those of one name and unit.
    Name,
    /// Those of one systemd unit, container or pod.
    Unit,
}

/// How [`watch`](crate::watch()) watches.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[allow(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct Options {
    /// What is watched.
    pub subject: Subject,
    /// For how many seconds. By default until the command ends, for 10 s without a command, and
    /// with `interval` for ever.
    pub duration: Option<u32>,
    /// Samples for each second of CPU time.
    pub frequency: u32,
    /// Count every read of one process by breakpoints, instead of taking samples.
    pub exact: bool,
    /// Allow breakpoints in a process that was not started here, although they can end it.
    pub may_end_process: bool,
    /// Watch the descendants of the process or command, too, unless reads are counted.
    pub children: bool,
    /// Which processes share a row. By default those of one name, but each has its own row if the
    /// subject is a process.
    pub group_by: Option<GroupBy>,
    /// Make a report after each so many seconds (see [`Progress`](crate::Progress)), unless reads
    /// are counted.
    pub interval: Option<u32>,
    /// Keep the call chains for [`Report::folded`](crate::Report::folded).
    pub folded: bool,
    /// Ask the servers in DEBUGINFOD_URLS for debug files that this machine lacks.
    pub debuginfod: bool,
}

impl Options {
    /// Samples at 499 Hz, with descendants.
    #[must_use]
    pub fn new(subject: Subject) -> Self {
        Self {
            subject,
            duration: None,
            frequency: 499,
            exact: false,
            may_end_process: false,
            children: true,
            group_by: None,
            interval: None,
            folded: false,
            debuginfod: false,
        }
    }

    /// Returns whether descendants are watched. Not with `exact`, because they would have no
    /// breakpoints and no guard.
    pub(crate) fn follows(&self) -> bool {
        self.children && !self.exact && matches!(self.subject, Subject::Process(_) | Subject::Command(_))
    }

    pub(crate) fn group_by(&self) -> GroupBy {
        let default =
            if matches!(self.subject, Subject::Process(_)) { GroupBy::Process } else { GroupBy::Name };
        self.group_by.unwrap_or(default)
    }
}
