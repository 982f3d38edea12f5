//! [`Line`] and [`Marks`]: the words of the clock that slow reads write outside of the latch.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use super::high_water::HighWater;
use super::status::Status;

/// 1 ms. Of two reads without a segment in force that come within this time, the second one makes a
/// segment.
pub(super) const SOON: u64 = 1_000_000;
/// The unit of a mark: 1024 ns.
const MARK_SHIFT: u32 = 10;

/// The rest of the first cache line. A sparse read touches no other line of the clock.
#[repr(C)]
pub(super) struct Line<S> {
    pub(super) high_water: HighWater,
    pub(super) source: S,
    /// How often the vDSO answered in the counter's place. Threads that count at once lose some.
    pub(super) vdso_reads: AtomicUsize,
}

/// Words that slow reads write.
pub(super) struct Marks {
    /// The time of the last read of the wall clock without a segment in force.
    pub(super) read_at: AtomicUsize,
    pub(super) forbids_system_calls: AtomicBool,
    /// How often the counter was refused, by reason.
    pub(super) refusals: [AtomicUsize; Status::COUNT],
}

impl<S> Line<S> {
    /// Whether the vDSO answered within [`SOON`] before `now`.
    #[inline]
    pub(super) fn is_soon(&self, now: u64) -> bool {
        now.wrapping_sub(self.high_water.get()) < SOON
    }
}

#[inline]
pub(super) fn count(counter: &AtomicUsize) {
    counter.store(counter.load(Relaxed).wrapping_add(1), Relaxed);
}

impl Marks {
    /// Whether a read of the wall clock without a segment in force came within [`SOON`] before.
    pub(super) fn is_soon(&self, now: u64) -> bool {
        let mark = (now >> MARK_SHIFT) as usize;
        mark.wrapping_sub(self.read_at.load(Relaxed)) < (SOON >> MARK_SHIFT) as usize
    }

    pub(super) fn mark(&self, now: u64) {
        self.read_at.store((now >> MARK_SHIFT) as usize, Relaxed);
    }
}
