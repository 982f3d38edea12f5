//! The reason why nothing was measured. The text of an error says what happened and what to do.

use std::io;

use nix::errno::Errno;

pub(crate) type Error = Box<dyn std::error::Error + Send + Sync>;
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// Returns the error of a process that was not started.
pub(crate) fn not_started(error: Errno) -> Error {
    format!("cannot start a process: fork(2) returns {error}").into()
}

/// Returns the error of a thread of this program that ended early.
pub(crate) fn ended<E>(_: E) -> Error {
    "a thread of vdso-who ended: please report it".into()
}

/// Returns whether an error came from the limit of open files.
pub(crate) fn is_limit(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}
