//! [`HighWater`]: the latest time that the vDSO answered in the counter's place.
//!
//! A segment that begins after the vDSO answered could say an earlier time than that answer. So a
//! caller that answers by the vDSO raises the high-water mark first, and a caller that answers by a
//! segment compares with it.
//!
//! `Relaxed` is enough. If one answer happens before another call, so does the update of the mark,
//! and coherence of the single atomic makes the later load see it or a higher value. The mark
//! publishes no other memory.

#[cfg(target_has_atomic = "64")]
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A time in nanoseconds. Without 64-bit atomics (ARMv5 and older) the vDSO always answers, so
/// there is none.
pub(crate) struct HighWater {
    #[cfg(target_has_atomic = "64")]
    nanos: AtomicU64,
}

#[cfg_attr(not(target_has_atomic = "64"), allow(unused_variables, clippy::unused_self, reason = "none"))]
impl HighWater {
    pub(crate) const fn new() -> Self {
        Self {
            #[cfg(target_has_atomic = "64")]
            nanos: AtomicU64::new(0),
        }
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        #[cfg(target_has_atomic = "64")]
        return self.nanos.load(Relaxed);
        #[cfg(not(target_has_atomic = "64"))]
        0
    }

    /// Raises the mark to `nanos`, if it is lower. Returns the mark.
    pub(crate) fn raise(&self, nanos: u64) -> u64 {
        #[cfg(target_has_atomic = "64")]
        return self.nanos.fetch_max(nanos, Relaxed).max(nanos);
        #[cfg(not(target_has_atomic = "64"))]
        nanos
    }

    /// Replaces the mark `old`. Returns `false` if another caller has changed it.
    #[inline]
    pub(crate) fn replace(&self, old: u64, nanos: u64) -> bool {
        #[cfg(target_has_atomic = "64")]
        return self.nanos.compare_exchange(old, nanos, Relaxed, Relaxed).is_ok();
        #[cfg(not(target_has_atomic = "64"))]
        true
    }
}
