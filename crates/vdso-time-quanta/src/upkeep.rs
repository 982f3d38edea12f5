use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{error, fmt, io};

use crate::{Clock, RECENT};

static IS_RUNNING: AtomicBool = AtomicBool::new(false);

/// The smallest lead of the recent time over a read of the clock, in nanoseconds, with which the
/// recent time counts as wrong and is replaced: 1 ms. A recent time with a smaller lead can be
/// right, because this CPU may have read the counter early.
const FUTURE: u64 = 1_000_000;

/// A thread that sets the time of [`Clock::recent`] and [`crate::Instant::recent`] at a fixed
/// interval.
#[derive(Debug)]
pub struct Upkeep {
    interval: Duration,
    clock: Clock,
}

/// The handle of an [`Upkeep`]. The thread ends when the handle is dropped.
#[derive(Debug)]
#[must_use = "the thread ends when the handle is dropped"]
pub struct Handle {
    is_ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Why an [`Upkeep`] cannot start.
#[derive(Debug)]
pub enum Error {
    /// An upkeep thread is already running.
    UpkeepRunning,
    /// The system cannot start a thread.
    FailedToSpawnUpkeepThread(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UpkeepRunning => f.write_str("upkeep thread already running"),
            Self::FailedToSpawnUpkeepThread(error) => {
                write!(f, "failed to spawn upkeep thread: {error}")
            }
        }
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::UpkeepRunning => None,
            Self::FailedToSpawnUpkeepThread(error) => Some(error),
        }
    }
}

impl Upkeep {
    /// Creates an upkeep with this interval.
    #[must_use]
    pub fn new(interval: Duration) -> Self {
        Self::new_with_clock(interval, Clock::new())
    }

    /// Creates an upkeep with this interval and this clock, which can be a mock.
    #[must_use]
    pub fn new_with_clock(interval: Duration, clock: Clock) -> Self {
        Self { interval, clock }
    }

    /// Sets the recent time, and starts the thread.
    ///
    /// # Errors
    ///
    /// If an upkeep thread is already running, or the system cannot start one.
    ///
    /// # Panics
    ///
    /// As [`Clock::now`].
    pub fn start(self) -> Result<Handle, Error> {
        let Self { interval, clock } = self;
        // The clock is read before `IS_RUNNING` is set, so that no upkeep counts as running if the
        // read panics.
        let _ = clock.raw();
        if IS_RUNNING.swap(true, Ordering::Acquire) {
            return Err(Error::UpkeepRunning);
        }
        // The recent time can be slightly later than `now`, if another thread has just set the
        // recent time and this CPU has read the counter early. An upkeep with the real clock keeps
        // such a recent time. It replaces a recent time that is earlier than `now`. It also
        // replaces a recent time that is later by 1 ms or more, because a mock may have set that
        // time. An upkeep with a mock replaces any recent time.
        let least = if clock.mock.is_some() { 0 } else { FUTURE };
        let refresh = move || {
            let next = |recent: u64| {
                let now = clock.raw();
                recent
                    .checked_sub(now)
                    .is_none_or(|lead| lead >= least)
                    .then_some(now)
            };
            RECENT
                .fetch_update(Ordering::Release, Ordering::Acquire, next)
                .ok();
        };
        refresh();
        let is_ended = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_ended);
        let work = move || {
            while !seen.load(Ordering::Relaxed) {
                thread::park_timeout(interval);
                refresh();
            }
        };
        let thread = thread::Builder::new()
            .name("quanta-upkeep".into())
            .spawn(work);
        let thread = thread.map_err(|error| {
            IS_RUNNING.store(false, Ordering::Release);
            Error::FailedToSpawnUpkeepThread(error)
        })?;
        Ok(Handle {
            is_ended,
            thread: Some(thread),
        })
    }
}

impl Drop for Handle {
    /// Ends the thread immediately, even if the interval is long.
    fn drop(&mut self) {
        self.is_ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // If the thread has panicked, it has reported that itself.
            let _ = thread.join();
        }
        IS_RUNNING.store(false, Ordering::Release);
    }
}
