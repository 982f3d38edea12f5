//! [`View`]: the state of the clock at one tick.

use super::latch::{Latch, Version, Word};
use super::segment::{self, Segment};
use super::source::Source;
use super::state::{ClockState, Phase, WORDS, Words, segment_of};
use super::status::Status;
use super::transition::NOISE_TICKS;

/// The smallest error that is assumed for a segment, in nanoseconds. If [`NOISE_TICKS`] take longer
/// than this, their time is assumed instead.
const LEAST_ERROR: u64 = 30;
/// The maximum number of measurements of an error. The smallest result counts.
const TRIES: u32 = 3;

pub(crate) struct View {
    pub(crate) version: Version,
    pub(crate) state: ClockState,
    pub(crate) ticks: u64,
    /// The segment that covers the tick.
    pub(crate) segment: Option<Segment>,
}

impl View {
    /// Loads the latch, reads the counter once if there is a segment, and combines them.
    pub(crate) fn take<S: Source>(latch: &Latch<WORDS>, source: &S) -> Self {
        latch.read_whole(|version, words| {
            let state = ClockState::from_words(&words[0].each_ref().map(Word::load));
            let ticks = if state.segment.span > 0 {
                source.ticks_ordered()
            } else {
                0
            };
            Self {
                version,
                state,
                ticks,
                segment: covering(ticks, version, words),
            }
        })
    }

    pub(crate) fn status(&self) -> Status {
        match (self.state.phase, self.state.unavailable) {
            (Phase::Off, Some(reason)) => Status::Unavailable(reason),
            (Phase::Running, _) if self.segment.is_some() => Status::Used,
            _ if self.version.has_writer() => Status::Updating,
            (Phase::Running, _) => Status::Stale,
            _ => Status::Calibrating,
        }
    }

    /// Returns the maximum distance in nanoseconds between the segment's time and the kernel's
    /// clock, from now until the segment ends. Returns `None` if a sandbox denies the clock.
    pub(crate) fn error<S: Source>(&self, segment: &Segment, source: &S) -> Option<u64> {
        let ClockState {
            base_rate, cost, ..
        } = self.state;
        let mut distance = u64::MAX;
        let mut before = self.ticks;
        for _ in 0..TRIES {
            let now = source.monotonic()?;
            let after = source.ticks_ordered();
            // The kernel's clock was read between the two ticks. A caller that was preempted can
            // read them long after the segment has ended, so the segment is extrapolated.
            let at_most = segment
                .extrapolated(before)
                .abs_diff(now)
                .max(segment.extrapolated(after).abs_diff(now));
            distance = distance.min(at_most);
            if after.wrapping_sub(before) <= cost.saturating_mul(3) {
                break;
            }
            before = after;
        }
        let left = segment.end().wrapping_sub(self.ticks);
        let drift = segment::nanos(left, segment.rate.abs_diff(base_rate));
        let ntp = segment::nanos(left, segment.rate).div_ceil(2000);
        let least = LEAST_ERROR.max(segment::nanos(NOISE_TICKS, base_rate));
        Some(least.saturating_add(distance).saturating_add(drift + ntp))
    }
}

/// Returns the segment that covers a tick: the current one, or the previous one if the current one
/// has not begun and no writer is overwriting the previous one.
///
/// The previous segment answers only for ticks in its last 1/128. The current segment was made when
/// the counter had already reached this last 1/128. So a later read finds an earlier tick only if
/// the counter was set back, or if this CPU's counter is far behind the writer's. The vDSO answers
/// such a read. If the previous segment answered it, the time would go back by up to two segments.
pub(crate) fn covering(
    ticks: u64,
    version: Version,
    [words, earlier]: [&Words; 2],
) -> Option<Segment> {
    let current = segment_of(words);
    if !current.begins_after(ticks) {
        return current.covering(ticks);
    }
    if version.has_writer() {
        return None;
    }
    let previous = segment_of(earlier);
    previous.ends_soon(ticks).then_some(previous)
}
