//! [`recent`]: the time that the last [`refresh`] stored, by one load.
//!
//! # Memory ordering
//!
//! [`refresh`] loads the kept time by `Acquire`, reads the clock after that, and raises the kept
//! time by `Release`. So a refresh that sees a kept time happens after the one that stored it, and
//! its own time is not earlier, except if the clock itself went back. [`recent`] can be `Relaxed`,
//! by coherence of the single atomic: a thread's loads never see an earlier value than its loads
//! and refreshes before.

#[cfg(target_has_atomic = "64")]
use core::sync::atomic::{AtomicU64, Ordering};

use super::monotonic_ordered;

/// 0 until the first refresh.
#[cfg(target_has_atomic = "64")]
static RECENT: AtomicU64 = AtomicU64::new(0);

/// Returns the time of the latest [`refresh`] in nanoseconds, by one load. If there was none, it
/// refreshes.
///
/// It is for programs that read the clock very often and accept an old time, such as event loops:
/// call `refresh` once in each turn of the loop, or start a `Refresher` (feature `std`).
///
/// It is not earlier than any time that the same thread got from `recent` or `refresh` before, or
/// that another thread got from them and passed on. It can be earlier than other reads, because
/// they write nothing: use `recent().max(start)` if `start` is a time of
/// [`monotonic`](super::monotonic).
/// The exceptions are those of [Order](super#order).
///
/// Programs without 64-bit atomics (ARMv5 and older) keep no time, and read the clock.
///
/// # Panics
///
/// As [`monotonic`](super::monotonic), at the first call.
///
/// # Examples
///
/// ```
/// use vdso_time_counter as counter;
///
/// let turn = counter::refresh();
/// let idle = counter::recent() - turn;
/// # assert_eq!(idle, 0);
/// ```
#[inline]
#[must_use]
#[track_caller]
pub fn recent() -> u64 {
    #[cfg(target_has_atomic = "64")]
    let kept = RECENT.load(Ordering::Relaxed);
    #[cfg(not(target_has_atomic = "64"))]
    let kept = 0;
    if kept == 0 { refresh() } else { kept }
}

/// Reads the clock, as [`monotonic_ordered`], and keeps the time for [`recent`].
///
/// # Panics
///
/// As [`monotonic`](super::monotonic).
#[track_caller]
pub fn refresh() -> u64 {
    #[cfg(target_has_atomic = "64")]
    {
        let kept = RECENT.load(Ordering::Acquire);
        let now = monotonic_ordered();
        if now < kept {
            // The clock went back: the process entered another time namespace. A failure means that
            // another thread has seen it too.
            let _ = RECENT.compare_exchange(kept, now, Ordering::Release, Ordering::Relaxed);
        } else {
            RECENT.fetch_max(now, Ordering::Release);
        }
        now
    }
    #[cfg(not(target_has_atomic = "64"))]
    monotonic_ordered()
}

#[cfg(feature = "std")]
pub use refresher::Refresher;

#[cfg(feature = "std")]
mod refresher {
    use core::time::Duration;
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread::{self, Thread};

    use super::refresh;

    /// A thread that calls [`refresh`] in an interval (feature `std`), until this is dropped.
    ///
    /// The age of [`recent`](super::recent) is at most the interval, and what the scheduler adds to
    /// it. A forked child has no such thread: start one there.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use vdso_time_counter::{self as counter, Refresher};
    ///
    /// let refresher = Refresher::start(Duration::from_millis(1))?;
    /// println!("{} ns, usually at most a millisecond ago", counter::recent());
    /// drop(refresher);
    /// # Ok::<(), std::io::Error>(())
    /// ```
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
        /// As [`monotonic`](super::super::monotonic).
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
}
