use std::sync::Arc;
use std::time::Duration;

use portable_atomic::{AtomicU64, Ordering};

/// A number of nanoseconds, or a `Duration`.
pub trait IntoNanoseconds {
    /// Converts this number or this duration to nanoseconds.
    fn into_nanos(self) -> u64;
}

impl IntoNanoseconds for u64 {
    fn into_nanos(self) -> u64 {
        self
    }
}

impl IntoNanoseconds for Duration {
    fn into_nanos(self) -> u64 {
        u64::try_from(self.as_nanos()).unwrap_or(u64::MAX)
    }
}

/// The time of a mocked [`Clock`](crate::Clock), which a test moves. Clones share one time.
#[derive(Clone, Debug)]
pub struct Mock(Arc<AtomicU64>);

impl Mock {
    pub(crate) fn new() -> Self {
        Self(Arc::new(AtomicU64::new(0)))
    }

    /// Moves the time forward.
    ///
    /// # Panics
    ///
    /// If the new time does not fit in a `u64`.
    pub fn increment<N: IntoNanoseconds>(&self, amount: N) {
        self.change(amount, u64::checked_add);
    }

    /// Moves the time back.
    ///
    /// # Panics
    ///
    /// If the new time would be below 0.
    pub fn decrement<N: IntoNanoseconds>(&self, amount: N) {
        self.change(amount, u64::checked_sub);
    }

    fn change(&self, amount: impl IntoNanoseconds, change: impl Fn(u64, u64) -> Option<u64>) {
        let amount = amount.into_nanos();
        let result = self
            .0
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |time| {
                change(time, amount)
            });
        result.unwrap_or_else(|time| panic!("a mock at {time} ns cannot be moved by {amount} ns"));
    }

    /// Returns the time in nanoseconds.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}
