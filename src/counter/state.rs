//! [`ClockState`]: the content of the latch, and how a read uses it.

use super::latch::{Snapshot, Word};
use super::sample::Sample;
use super::segment::{self, Rate, Segment};
use super::status::Status;

/// The number of words of a state. A read takes the first five.
pub(super) const WORDS: usize = 11;

/// Everything that is known of the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClockState {
    pub(super) segment: Segment,
    /// `CLOCK_REALTIME` minus `CLOCK_MONOTONIC`, in nanoseconds.
    pub(super) offset: i64,
    /// The measured rate. The segment's rate is this one plus a correction.
    pub(super) base_rate: Rate,
    /// The last sample of both clocks.
    pub(super) sampled: Sample,
    /// The least number of ticks that a read of both clocks took.
    pub(super) cost: u64,
    pub(super) phase: Phase,
    /// How many calibrations in a row were spoilt.
    pub(super) spoilt: u8,
    /// How many divergences in a row came on another CPU than before.
    pub(super) strikes: u8,
    /// The CPU of the last sample, if known.
    pub(super) cpu: Option<u32>,
}

/// The progress of the calibration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing is known.
    Idle,
    /// There is a sample, from which a rough rate will follow.
    Rough,
    /// There are a rough rate and a good sample, from which the rate will follow.
    Baseline,
    /// There is a segment.
    Running,
    /// The counter is not used.
    Off(Status),
}

/// The code of `Phase::Off` with the first status.
const OFF: u8 = 16;

impl ClockState {
    /// A state without a segment. No answer will be earlier than the end of `segment`.
    pub(super) fn without_segment(phase: Phase, segment: &Segment) -> Self {
        let segment = Segment::empty(segment.end_nanos());
        Self { segment, phase, ..Self::from_words(&[0; WORDS]) }
    }

    /// Whether the counter will never be used.
    pub(super) fn is_final(&self) -> bool {
        matches!(self.phase, Phase::Off(status) if !status.is_temporary())
    }

    /// The counter's rate in Hz, once it is measured.
    pub(super) fn frequency(&self) -> Option<u64> {
        (self.phase == Phase::Running).then(|| segment::frequency(self.base_rate))
    }

    pub(super) fn to_words(self) -> [u64; WORDS] {
        let phase = match self.phase {
            Phase::Idle => 0,
            Phase::Rough => 1,
            Phase::Baseline => 2,
            Phase::Running => 3,
            Phase::Off(status) => OFF + status as u8,
        };
        let cpu = self.cpu.map_or(0, |cpu| u64::from(cpu) + 1);
        [
            self.segment.start,
            self.segment.nanos,
            self.segment.rate,
            self.segment.fresh_span(),
            self.offset as u64,
            self.segment.span,
            self.base_rate,
            self.sampled.ticks,
            self.sampled.nanos,
            self.cost,
            u64::from(phase) | (u64::from(self.spoilt) << 8) | (u64::from(self.strikes) << 16) | (cpu << 24),
        ]
    }

    pub(super) fn from_words(words: &[u64; WORDS]) -> Self {
        let [start, nanos, rate, _, offset, span, base_rate, ticks, sampled, cost, rest] = *words;
        let phase = match rest as u8 {
            0 => Phase::Idle,
            1 => Phase::Rough,
            2 => Phase::Baseline,
            3 => Phase::Running,
            off => Phase::Off(Status::from_code(off.wrapping_sub(OFF))),
        };
        Self {
            segment: Segment { start, nanos, rate, span },
            offset: offset as i64,
            base_rate,
            sampled: Sample { ticks, nanos: sampled },
            cost,
            phase,
            spoilt: (rest >> 8) as u8,
            strikes: (rest >> 16) as u8,
            cpu: (rest >> 24).checked_sub(1).map(|cpu| cpu as u32),
        }
    }
}

/// The time of a tick that is read meanwhile, if there is a segment and the next one is not due.
///
/// Without a segment the counter is not read, because this thread may have no right to read it.
/// This branch also orders `isb` after the load it depends on (Arm Architecture Reference Manual,
/// D12.2).
#[inline]
pub(super) fn fresh_monotonic(words: &[Word; WORDS], ticks: impl FnOnce() -> u64) -> Option<u64> {
    let [start, nanos, rate, fresh_span, ..] = words;
    let fresh_span = fresh_span.load();
    if fresh_span == 0 {
        return None;
    }
    let past = ticks().wrapping_sub(start.load());
    let nanos = nanos.load().wrapping_add(segment::nanos(past, rate.load()));
    (past < fresh_span).then_some(nanos)
}

/// The same for `CLOCK_REALTIME`.
#[inline]
pub(super) fn fresh_realtime(words: &[Word; WORDS], ticks: impl FnOnce() -> u64) -> Option<i64> {
    let [_, _, _, _, offset, ..] = words;
    Some((fresh_monotonic(words, ticks)? as i64).wrapping_add(offset.load() as i64))
}

/// The time of a tick by the current segment, or by the previous one, which covers the ticks up to
/// the current one's first.
pub(super) fn time_at(snapshot: &Snapshot<WORDS>, ticks: u64) -> Option<u64> {
    let state = ClockState::from_words(&snapshot.words);
    if state.phase != Phase::Running {
        return None;
    }
    let previous = || ClockState::from_words(snapshot.previous.as_ref()?).segment.at(ticks);
    state.segment.at(ticks).or_else(previous)
}
