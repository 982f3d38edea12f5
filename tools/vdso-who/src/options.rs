//! What is watched, and how.

use std::ffi::OsString;
use std::path::PathBuf;

/// What [`watch`](crate::watch()) watches.
#[derive(Clone, Debug)]
pub enum Subject {
    /// A process.
    Process(u32),
    /// A program and its arguments, to start. Without [`Options::exact`] the processes that it
    /// starts are watched, too.
    Command(Vec<OsString>),
    /// The processes of a cgroup, by its folder in /sys/fs/cgroup.
    Cgroup(PathBuf),
    /// All processes.
    Host,
}

/// How [`watch`](crate::watch()) watches.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct Options {
    /// What is watched.
    pub subject: Subject,
    /// For how many seconds; otherwise until the command ends, or 10.
    pub duration: Option<u32>,
    /// Samples for each second of CPU time.
    pub frequency: u32,
    /// Count every read by breakpoints, instead of taking samples.
    pub exact: bool,
    /// Allow breakpoints in a process that was not started here, although they can end it.
    pub may_end_process: bool,
    /// Keep the call chains for [`Report::folded`](crate::Report::folded).
    pub folded: bool,
    /// Ask the servers in DEBUGINFOD_URLS for debug files that this machine lacks.
    pub debuginfod: bool,
}

impl Options {
    /// Samples at 499 Hz.
    #[must_use]
    pub fn new(subject: Subject) -> Self {
        let (exact, may_end_process, folded, debuginfod) = Default::default();
        Self { subject, duration: None, frequency: 499, exact, may_end_process, folded, debuginfod }
    }
}
