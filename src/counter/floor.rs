//! [`Floor`]: the latest time that the vDSO answered in the counter's place.
//!
//! A line is right to some nanoseconds, so one that begins after the vDSO answered might say an earlier time than that. Who
//! answers by the vDSO raises the floor first, and who answers by a line looks at it: a time that happened before is seen,
//! for all of this is one atomic word, and in one word there is no order to get wrong. So `Relaxed` is enough.

#[cfg(target_has_atomic = "64")]
use core::sync::atomic::{AtomicU64, Ordering};

/// Nanoseconds.
#[cfg(target_has_atomic = "64")]
pub(super) struct Floor(AtomicU64);

#[cfg(target_has_atomic = "64")]
impl Floor {
    pub(super) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    #[inline]
    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Raises it to this time, and says where it is then.
    pub(super) fn raise(&self, nanos: u64) -> u64 {
        self.0.fetch_max(nanos, Ordering::Relaxed).max(nanos)
    }

    /// Lowers it to this time, if it is still where it was: the kernel's clock is another one now.
    pub(super) fn lower(&self, floor: u64, nanos: u64) {
        let _ = self.0.compare_exchange(floor, nanos, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// Where there are no 64-bit atomics (ARMv5 and before) the counter is not trusted, so the vDSO answers always.
#[cfg(not(target_has_atomic = "64"))]
pub(super) struct Floor;

#[cfg(not(target_has_atomic = "64"))]
impl Floor {
    pub(super) const fn new() -> Self {
        Self
    }

    #[inline]
    pub(super) fn get(&self) -> u64 {
        0
    }

    pub(super) fn raise(&self, nanos: u64) -> u64 {
        nanos
    }

    pub(super) fn lower(&self, _floor: u64, _nanos: u64) {}
}
