//! The API of minstant 0.1 and fastant 0.1. Its `Instant` is this crate's type.

use std::sync::OnceLock;

use portable_atomic::{AtomicU64, Ordering};
use vdso_time_counter::check;
use web_time::{SystemTime, UNIX_EPOCH};

pub use crate::Instant;

/// Returns whether the first call of this function found that the kernel derives its time from the
/// CPU's counter and that this process may read the counter.
///
/// The answer is always the same in a process, as in fastant. The first call makes the system calls
/// of [`check`]. `vdso_time_counter::state()` says whether the counter answers at this moment.
#[must_use]
pub fn is_tsc_available() -> bool {
    static IS_AVAILABLE: OnceLock<bool> = OnceLock::new();
    *IS_AVAILABLE.get_or_init(|| check().is_ok())
}

/// The difference between the wall clock and an [`Instant`], for [`Instant::as_unix_nanos`].
#[derive(Clone, Copy, Debug)]
pub struct Anchor {
    offset: u64,
}

impl Anchor {
    /// Reads both clocks.
    ///
    /// # Panics
    ///
    /// If the wall clock is before 1970, or if [`Clock::now`](crate::Clock::now) panics.
    #[must_use]
    pub fn new() -> Self {
        let unix = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .expect("the wall clock is before 1970");
        Self {
            offset: (unix.as_nanos() as u64).wrapping_sub(crate::monotonic()),
        }
    }
}

impl Default for Anchor {
    fn default() -> Self {
        Self::new()
    }
}

impl Instant {
    /// The zero of the clock.
    pub const ZERO: Self = Self(0);

    /// Returns this instant in nanoseconds since the Epoch. If the wall clock was set after the
    /// anchor was made, the result does not take that into account.
    #[must_use]
    pub fn as_unix_nanos(&self, anchor: &Anchor) -> u64 {
        self.0.wrapping_add(anchor.offset)
    }
}

/// An [`Instant`] that threads can share, with the methods of std's atomics.
#[derive(Debug)]
#[repr(transparent)]
pub struct Atomic(AtomicU64);

macro_rules! change {
    ($($method:ident: $what:literal;)+) => {$(
        #[doc = $what]
        #[doc = "\n\nReturns the previous instant."]
        #[inline]
        pub fn $method(&self, instant: Instant, order: Ordering) -> Instant {
            Instant(self.0.$method(instant.0, order))
        }
    )+};
}

impl Atomic {
    /// Creates an atomic that holds an instant.
    #[inline]
    #[must_use]
    pub fn new(instant: Instant) -> Self {
        Self(AtomicU64::new(instant.0))
    }

    /// Returns the instant.
    #[inline]
    #[must_use]
    pub fn into_instant(self) -> Instant {
        Instant(self.0.into_inner())
    }

    /// Loads the instant.
    ///
    /// # Panics
    ///
    /// As std's `load`.
    #[inline]
    #[must_use]
    pub fn load(&self, order: Ordering) -> Instant {
        Instant(self.0.load(order))
    }

    /// Stores an instant.
    ///
    /// # Panics
    ///
    /// As std's `store`.
    #[inline]
    pub fn store(&self, instant: Instant, order: Ordering) {
        self.0.store(instant.0, order);
    }

    change! {
        fetch_max: "Stores the later of the two instants.";
        fetch_min: "Stores the earlier of the two instants.";
        swap: "Stores an instant.";
    }
}

impl From<Instant> for Atomic {
    #[inline]
    fn from(instant: Instant) -> Self {
        Self::new(instant)
    }
}
