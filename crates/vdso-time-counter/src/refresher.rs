//! [`Refresher`]: a thread that keeps the last reading young.

use core::time::Duration;
use std::sync::Arc;
use std::{io, thread};

use super::recent::refresh;

/// A thread that sleeps for an interval and calls [`refresh`], again and again (feature `std`).
///
/// After this is dropped, the thread lives for up to the rest of the interval and refreshes at most
/// once more. A panic in `refresh` ends it: then [`recent`](super::recent) is not refreshed any
/// more. An interval of zero is the shortest sleep that the system has.
///
/// The age of [`recent`](super::recent) is at most the interval, and what the scheduler adds to
/// it. A forked child has no such thread: start one there.
#[derive(Debug)]
#[must_use = "the thread ends when the `Refresher` is dropped"]
pub struct Refresher {
    _is_wanted: Arc<()>,
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
        let is_wanted = Arc::new(());
        let seen = Arc::downgrade(&is_wanted);
        // A sleep of zero would return at once, and keep a CPU busy.
        let interval = interval.max(Duration::from_nanos(1));
        let work = move || {
            while seen.strong_count() > 0 {
                thread::sleep(interval);
                refresh();
            }
        };
        thread::Builder::new().name("vdso-time".into()).spawn(work)?;
        Ok(Self { _is_wanted: is_wanted })
    }
}
