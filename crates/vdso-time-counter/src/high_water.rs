//! [`HighWater`]: the latest time that the vDSO answered in the counter's place.
//!
//! A segment is exact to some nanoseconds. One that begins after the vDSO answered could say an
//! earlier time than that answer. So a caller that answers by the vDSO raises the high-water mark
//! first, and a caller that answers by a segment compares with it.
//!
//! # Memory ordering
//!
//! `Relaxed` is enough. If one answer happens before another call, so does the update of the mark,
//! and coherence of the single atomic makes the later load see it or a higher value. The mark
//! publishes no other memory.

#[cfg(target_has_atomic = "64")]
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A time in nanoseconds.
#[cfg(target_has_atomic = "64")]
pub(super) struct HighWater(AtomicU64);

#[cfg(target_has_atomic = "64")]
impl HighWater {
    pub(super) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    #[inline]
    pub(super) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Raises the mark to `nanos`, if it is lower. Returns the mark.
    pub(super) fn raise(&self, nanos: u64) -> u64 {
        self.0.fetch_max(nanos, Relaxed).max(nanos)
    }

    /// Replaces the mark `old`. Returns `false` if another caller has changed it.
    #[inline]
    pub(super) fn replace(&self, old: u64, nanos: u64) -> bool {
        self.0.compare_exchange(old, nanos, Relaxed, Relaxed).is_ok()
    }
}

/// Without 64-bit atomics (ARMv5 and older) the vDSO always answers, so there is no mark.
#[cfg(not(target_has_atomic = "64"))]
pub(super) struct HighWater;

#[cfg(not(target_has_atomic = "64"))]
impl HighWater {
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

    #[inline]
    pub(super) fn replace(&self, _old: u64, _nanos: u64) -> bool {
        true
    }
}
