//! Why a measurement fails.

use std::io;

use nix::errno::Errno;

/// Why nothing was measured. The text says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such process, it ended, it is a kernel thread, or /proc hides it.
    #[error(
        "process {0}: there is no such process, it ended, it is a kernel thread, or /proc hides it (hidepid)"
    )]
    NoProcess(u32),
    /// The caller lacks a right, or a sandbox denies a system call.
    #[error("{0}")]
    Denied(String),
    /// The machine, the kernel or the process lacks what a measurement needs.
    #[error("{0}")]
    Unsupported(String),
    /// The options contradict each other, or name what cannot be watched.
    #[error("{0}")]
    Options(String),
    /// The command cannot be executed.
    #[error("cannot run {program}: {source}")]
    Command {
        /// Its program.
        program: String,
        /// Why the kernel refused it.
        source: io::Error,
    },
    /// The caller's function ended the measurement before it began.
    #[error("it was interrupted before it began")]
    Interrupted,
    /// A system call failed for another reason.
    #[error(transparent)]
    System(#[from] io::Error),
}

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

impl From<Errno> for Error {
    fn from(error: Errno) -> Self {
        Self::System(error.into())
    }
}

/// Returns the error of a thread of this library that ended early.
pub(crate) fn ended<E>(_: E) -> Error {
    Error::System(io::Error::other("a thread of vdso-who ended: please report it"))
}
