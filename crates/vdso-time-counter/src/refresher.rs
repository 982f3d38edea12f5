//! [`Refresher`]: a thread that keeps the last reading young.

use core::time::Duration;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};

use super::recent::refresh;

/// A thread that calls [`refresh`] in an interval (feature `std`), until this is dropped.
///
/// The age of [`recent`](super::recent) is at most the interval, and what the scheduler adds to
/// it. A forked child has no such thread: start one there.
#[derive(Debug)]
#[must_use = "the thread ends when the `Refresher` is dropped"]
pub struct Refresher {
    is_ended: Arc<AtomicBool>,
    thread: Thread,
}

impl Refresher {
    /// Refreshes, and starts the thread.
    ///
    /// # Errors
    ///
    /// The system's error, if it cannot start a thread.
    ///
    /// # Panics
    ///
    /// As [`refresh`].
    pub fn start(interval: Duration) -> io::Result<Self> {
        refresh();
        let is_ended = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_ended);
        let work = move || {
            while !seen.load(Ordering::Relaxed) {
                thread::park_timeout(interval);
                refresh();
            }
        };
        let thread = thread::Builder::new().name("vdso-time".into()).spawn(work)?;
        Ok(Self { is_ended, thread: thread.thread().clone() })
    }
}

impl Drop for Refresher {
    /// Ends the thread. It does not wait for it, because a forked child would wait for ever.
    fn drop(&mut self) {
        self.is_ended.store(true, Ordering::Relaxed);
        self.thread.unpark();
    }
}
