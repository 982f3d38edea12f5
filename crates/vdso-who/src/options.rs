//! What is watched, and how.

use std::ffi::OsString;

/// What [`watch`](crate::watch) watches, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The process.
    pub pid: Option<u32>,
    /// Without `pid`: a program and its arguments, to start.
    pub command: Vec<OsString>,
    /// For how many seconds; otherwise 10 for a process, or until the command ends.
    pub duration: Option<u32>,
    /// Samples for each second of a thread's CPU time.
    pub frequency: u32,
    /// Count the reads, in slices of the time.
    pub count: bool,
    /// The share of the time in which reads are counted, in percent.
    pub percent: u8,
    /// Count every read.
    pub exact: bool,
    /// Keep the call chains for [`Report::folded`](crate::Report::folded).
    pub folded: bool,
}

impl Default for Options {
    fn default() -> Self {
        let (pid, command, duration, count, exact, folded) = Default::default();
        Self { pid, command, duration, frequency: 499, count, percent: 1, exact, folded }
    }
}

/// How far a measurement is.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// Whole seconds since its start.
    pub seconds: u64,
    /// Samples of the process.
    pub samples: u64,
    /// Those in clock reads.
    pub reads: u64,
}
