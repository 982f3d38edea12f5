//! The offset of the wall clock from the monotonic clock.

use super::clock::CounterClock;
use super::sample::{Source, middle};
use super::state::ClockState;

/// How often the offset is measured. An interrupt between two reads widens the result, so the
/// narrowest one counts.
const TRIES: u32 = 4;
/// The longest wait of `resync` for another caller's update, in nanoseconds. The stores take less.
/// They do not end while this is a signal handler that interrupted that caller.
const UPDATE: u64 = 10_000;
/// The longest wait of `resync` in all, in nanoseconds: more than 1/256 of a segment.
const PATIENCE: u64 = 100_000;

impl<S: Source> CounterClock<S> {
    /// The offset that the next reads of the wall clock will use, in nanoseconds.
    pub(crate) fn offset(&self) -> Option<i64> {
        // A segment that is about to begin counts, too.
        let in_force = || {
            let ClockState { segment, offset, .. } = self.load();
            let ticks = (segment.span > 0).then(|| self.source().ticks_ordered())?;
            (segment.begins_after(ticks) || segment.covering(ticks).is_some()).then_some(offset)
        };
        in_force().or_else(|| {
            self.slow_monotonic()?;
            in_force().or_else(|| self.kernels_offset().map(middle))
        })
    }

    /// The least and the greatest possible offset of the kernel's clocks.
    fn kernels_offset(&self) -> Option<[i64; 2]> {
        let mut best: Option<[i64; 2]> = None;
        let mut before = self.source().monotonic()?;
        for _ in 0..TRIES {
            let realtime = self.source().realtime()?;
            let after = self.source().monotonic()?;
            let found = [after, before].map(|monotonic| realtime.wrapping_sub(monotonic as i64));
            best = best.filter(|best| width(*best) <= width(found)).or(Some(found));
            before = after;
        }
        best
    }

    /// How far the next time of the wall clock may be from the kernel's, in nanoseconds, given the
    /// bound of the monotonic clock.
    pub(crate) fn wall_bound(&self, bound: u64) -> Option<u64> {
        let offset = self.offset()?;
        let errors = self.kernels_offset()?.map(|possible| possible.abs_diff(offset));
        Some(bound.saturating_add(errors[0].max(errors[1])))
    }

    /// Makes the wall clock follow the kernel's at once. Returns whether it does.
    ///
    /// It publishes a state even if the offset is the same. So a caller that measured the offset
    /// earlier cannot publish its result later.
    pub(crate) fn resync(&self) -> bool {
        let Some(start) = self.source().monotonic() else { return false };
        let mut passed = 0;
        loop {
            let (version, words) = self.latch.snapshot();
            let state = ClockState::from_words(&words);
            // An update would drop the previous segment, which is in force until this one begins.
            let is_early =
                state.segment.span > 0 && state.segment.begins_after(self.source().ticks_ordered());
            if !is_early && !version.has_writer() {
                let Some(offset) = self.kernels_offset().map(middle) else { return false };
                if self.latch.update(version, &ClockState { offset, ..state }.to_words()) {
                    return true;
                }
            }
            // Checked after a try, so there is one more try if an interrupt used up the time.
            if passed > if version.has_writer() { UPDATE } else { PATIENCE } {
                return false;
            }
            let Some(now) = self.source().monotonic() else { return false };
            passed = now.wrapping_sub(start);
        }
    }
}

fn width([low, high]: [i64; 2]) -> u64 {
    high.abs_diff(low)
}
