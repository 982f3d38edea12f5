//! The offset of the wall clock from the monotonic clock.

use super::clock::CounterClock;
use super::sample::{Source, middle};
use super::state::ClockState;

/// How often the offset is measured. The narrowest result counts, because an interrupt between two
/// reads widens it.
const TRIES: u32 = 4;
/// For how long, in nanoseconds, a resynchronization waits for another caller's update, whose
/// stores take less. If this is a signal handler that interrupted the caller, they never end.
const UPDATE: u64 = 10_000;
/// For how long it waits in all: for longer than 1/256 of a segment.
const PATIENCE: u64 = 100_000;

impl<S: Source> CounterClock<S> {
    /// `CLOCK_REALTIME` minus `CLOCK_MONOTONIC` in nanoseconds, as the next reads will have it.
    pub(crate) fn offset(&self) -> Option<i64> {
        // Also of a segment that begins at one of the next ticks.
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
    /// It publishes a state, even if the offset is the same. So a caller that measured the offset
    /// before cannot publish it after this.
    pub(crate) fn resync(&self) -> bool {
        let Some(start) = self.source().monotonic() else { return false };
        let mut passed = 0;
        loop {
            let (version, words) = self.latch.snapshot();
            let state = ClockState::from_words(&words);
            // An update forgets the previous segment, which is in force until this one begins.
            let is_early =
                state.segment.span > 0 && state.segment.begins_after(self.source().ticks_ordered());
            if !is_early && !version.has_writer() {
                let Some(offset) = self.kernels_offset().map(middle) else { return false };
                if self.latch.update(version, &ClockState { offset, ..state }.to_update()) {
                    return true;
                }
            }
            // It tries again after the limit, because the wait may have been an interrupt.
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
