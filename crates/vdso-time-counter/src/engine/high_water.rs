//! [`HighWater`]: the latest of the times that callers got from the vDSO, when it answered instead
//! of the counter.
//!
//! A segment that is made after such an answer can begin at a time that is earlier than the answer.
//! So a caller that answers from the vDSO raises the mark first. A caller that answers from a
//! segment compares its time with the mark. If the time is below the mark, a fast read fails, and a
//! slow read returns the mark instead.
//!
//! `Relaxed` is enough. A caller raises the mark before it returns the vDSO's answer. So if that
//! answer happens before another caller's read, the update of the mark does as well. The read then
//! loads this mark or a higher one, because all loads and stores of a single atomic are coherent.
//! The mark publishes no other memory.

#[cfg(not(target_has_atomic = "64"))]
use core::sync::atomic::AtomicU32 as AtomicU64;
#[cfg(target_has_atomic = "64")]
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

/// The mark: a time in nanoseconds. On targets without 64-bit atomics (ARMv5 and older) the vDSO
/// always answers, so the mark is not used. It has only 32 bits there, so that the code compiles.
pub(crate) struct HighWater(AtomicU64);

#[allow(clippy::useless_conversion, reason = "not without 64-bit atomics")]
impl HighWater {
    pub(crate) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed).into()
    }

    /// Raises the mark to `nanos` if the mark is lower. Returns the mark that results.
    pub(crate) fn raise(&self, nanos: u64) -> u64 {
        let old = self.0.fetch_max(nanos as _, Relaxed).into();
        nanos.max(old)
    }

    /// Sets the mark to `nanos` if the mark is still `old`. Returns `false` if another caller has
    /// changed the mark.
    #[inline]
    pub(crate) fn replace(&self, old: u64, nanos: u64) -> bool {
        self.0
            .compare_exchange(old as _, nanos as _, Relaxed, Relaxed)
            .is_ok()
    }
}
