#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use portable_atomic::{AtomicU64, Ordering};

mod instant;
pub mod minstant;
mod mock;
mod upkeep;

pub use instant::Instant;
pub use mock::{IntoNanoseconds, Mock};
pub use upkeep::{Error, Handle, Upkeep};

/// The recent time in nanoseconds, or 0 if none is set.
static RECENT: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The mock of [`with_clock`].
    static MOCK: RefCell<Option<Arc<Mock>>> = const { RefCell::new(None) };
}

/// A clock, or a mock of a clock. All clocks that are not mocks are the same clock.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    mock: Option<Arc<Mock>>,
}

impl Clock {
    /// Returns the clock. It does not wait for a calibration.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a clock that stands at 0, and the handle that moves it.
    #[must_use]
    pub fn mock() -> (Self, Arc<Mock>) {
        let mock = Arc::new(Mock::new());
        (
            Self {
                mock: Some(Arc::clone(&mock)),
            },
            mock,
        )
    }

    /// Returns the time. It does not go back within a thread, unless a test moves a mock back. With
    /// the feature `ordered`, the time of a clock that is not a mock is not earlier than a time
    /// that any thread read before.
    ///
    /// # Panics
    ///
    /// If a sandbox denies every way to read the clock.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Instant {
        Instant(self.raw())
    }

    /// Returns the time of [`now`](Self::now) in nanoseconds.
    ///
    /// # Panics
    ///
    /// As [`now`](Self::now).
    #[inline]
    #[must_use]
    pub fn raw(&self) -> u64 {
        match &self.mock {
            Some(mock) => mock.value(),
            None => monotonic(),
        }
    }

    /// Returns the time of a [`raw`](Self::raw) value.
    #[inline]
    #[must_use]
    pub fn scaled(&self, value: u64) -> Instant {
        Instant(value)
    }

    /// Returns the time between two [`raw`](Self::raw) values, or 0 if `end` is before `start`.
    #[inline]
    #[must_use]
    pub fn delta(&self, start: u64, end: u64) -> Duration {
        Duration::from_nanos(self.delta_as_nanos(start, end))
    }

    /// Returns the nanoseconds between two [`raw`](Self::raw) values, or 0 if `end` is before
    /// `start`.
    #[inline]
    #[must_use]
    pub fn delta_as_nanos(&self, start: u64, end: u64) -> u64 {
        end.saturating_sub(start)
    }

    /// Returns the time that [`set_recent`] or an [`Upkeep`] set last. That costs one load. If
    /// neither has set a time, or if this clock is a mock, this function returns the time of
    /// [`now`](Self::now).
    ///
    /// # Panics
    ///
    /// As [`now`](Self::now).
    #[inline]
    #[must_use]
    pub fn recent(&self) -> Instant {
        if self.mock.is_some() {
            return self.now();
        }
        match recent() {
            Some(recent) => recent,
            None => self.now(),
        }
    }
}

/// Makes [`Instant::now`] read this clock, in this thread, until the closure returns.
pub fn with_clock<T>(clock: &Clock, f: impl FnOnce() -> T) -> T {
    struct Restore(Option<Arc<Mock>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            MOCK.set(self.0.take());
        }
    }
    let _restore = Restore(MOCK.replace(clock.mock.clone()));
    f()
}

/// Sets the time that [`Instant::recent`] and [`Clock::recent`] return, unless a later time is
/// already set.
///
/// An instant of 0 clears the recent time. Inside [`with_clock`] with a mock, `instant` replaces
/// even a later time.
pub fn set_recent(instant: Instant) {
    if instant.0 == 0 || mocked().is_some() {
        RECENT.store(instant.0, Ordering::Release);
    } else {
        RECENT.fetch_max(instant.0, Ordering::Release);
    }
}

#[inline]
fn recent() -> Option<Instant> {
    match RECENT.load(Ordering::Acquire) {
        0 => None,
        nanos => Some(Instant(nanos)),
    }
}

/// Returns the mock's time inside [`with_clock`] with a mock, and `None` elsewhere. When a thread
/// ends, a destructor can read the time after `MOCK` was destroyed. The result is then `None` as
/// well.
#[inline]
fn mocked() -> Option<u64> {
    MOCK.try_with(|mock| mock.borrow().as_ref().map(|mock| mock.value()))
        .ok()
        .flatten()
}

/// Returns the time in nanoseconds. On Linux it is on the scale of `CLOCK_MONOTONIC`.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[inline]
fn monotonic() -> u64 {
    let nanos = if cfg!(feature = "ordered") {
        vdso_time_counter::CounterMonotonic::now().as_nanos()
    } else {
        vdso_time_counter::CounterMonotonicUnordered::now().as_nanos()
    };
    nanos as u64
}

/// Returns the time of std's clock in nanoseconds. The first read returns about 36 years instead of
/// 0, so that a program can subtract a duration from an early time.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn monotonic() -> u64 {
    static START: std::sync::OnceLock<web_time::Instant> = std::sync::OnceLock::new();
    (1 << 60)
        + START
            .get_or_init(web_time::Instant::now)
            .elapsed()
            .as_nanos() as u64
}
