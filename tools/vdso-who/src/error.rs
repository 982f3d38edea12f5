//! The errors that end the program. The text of an error says what happened and what to do.

use std::io;

use nix::errno::Errno;

pub(crate) type Error = Box<dyn std::error::Error + Send + Sync>;
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// Returns the error for a process that could not be started.
pub(crate) fn not_started(error: Errno) -> Error {
    format!("cannot start a process: fork(2) failed: {error}").into()
}

/// Returns the error for a thread of this program that ended unexpectedly.
pub(crate) fn ended<E>(_: E) -> Error {
    "a thread of vdso-who ended unexpectedly: please report this".into()
}

/// Returns whether an error means that the limit on open files has been reached.
pub(crate) fn is_limit(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}
