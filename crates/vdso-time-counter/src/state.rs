//! [`ClockState`]: the content of the latch, and how a read uses it.

use super::latch::{Update, WRITER, Word};
use super::sample::Sample;
use super::segment::{self, Rate, Segment};
use super::status::{Statistics, Status};

/// The number of words of a state: two cache lines. Fast reads take the hot words instead.
pub(super) const WORDS: usize = 16;
/// The number of words beside the sequence number.
pub(super) const HOT: usize = 4;
/// The hot word that holds minus the check time while the counter is not used.
pub(super) const CHECK: usize = 3;

/// The flag of a state without a segment.
pub(super) const NO_SEGMENT: usize = 2;
/// The flag of a state in which a sparse read may answer by the vDSO and update nothing.
pub(super) const RESTS: usize = 4;
/// The flag of a state in which the counter is not used, and the last segment has ended.
pub(super) const NOT_USED: usize = 8;

/// The age at which a sample gives no rate, because the system may have been suspended since.
pub(super) const OLD: u64 = 1_000_000_000;
/// The longest time after which a refusal is checked again, in nanoseconds.
pub(super) const LONGEST_RETRY: u64 = 640_000_000_000;

/// Everything that is known of the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClockState {
    /// The last segment. After a refusal it is still used until it ends.
    pub(super) segment: Segment,
    /// `CLOCK_REALTIME` minus `CLOCK_MONOTONIC`, in nanoseconds.
    pub(super) offset: i64,
    /// The last sample of both clocks. While the counter is refused, its time is the *check time*,
    /// at which the kernel must be asked again.
    pub(super) sampled: Sample,
    /// The measured rate. The segment's rate is this one plus a correction.
    pub(super) base_rate: Rate,
    /// The least number of ticks that a read of both clocks took. 32 bits of it are stored.
    pub(super) cost: u64,
    /// When the kernel was last asked for its clock source.
    pub(super) checked: u64,
    /// When the history last took a sample as a mark.
    pub(super) marked: u64,
    /// `CLOCK_MONOTONIC_RAW` minus `CLOCK_MONOTONIC` at the sample of a calibration, if known.
    pub(super) raw_offset: i64,
    pub(super) phase: Phase,
    /// How many calibrations in a row were spoilt.
    pub(super) spoilt: u8,
    /// For how many more segments the kernel's rate is expected to change.
    pub(super) unsteady: u8,
    pub(super) tally: Tally,
}

/// What the clock counts for its statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) segments: u64,
    pub(super) calibrations: u32,
    pub(super) refusals: Refusals,
    /// In nanoseconds.
    pub(super) last_error: u32,
    pub(super) largest_error: u32,
}

impl Tally {
    pub(super) fn statistics(self, vdso_reads: u64, by_reason: [u64; Status::COUNT]) -> Statistics {
        Statistics {
            segments: self.segments,
            calibrations: self.calibrations.into(),
            refusals: self.refusals.count().into(),
            by_reason,
            last_refusal: self.refusals.last(),
            vdso_reads,
            last_error: self.last_error.into(),
            largest_error: self.largest_error.into(),
        }
    }
}

/// How often the counter was refused, at most 2^24 - 1, and in the upper byte the code of the last
/// reason plus 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refusals(pub(super) u32);

impl Refusals {
    const MOST: u32 = (1 << 24) - 1;

    pub(super) fn count(self) -> u32 {
        self.0 & Self::MOST
    }

    pub(super) fn last(self) -> Option<Status> {
        (self.0.to_be_bytes()[0]).checked_sub(1).map(Status::from_code)
    }

    pub(super) fn and(self, status: Status) -> Self {
        Self((self.count() + 1).min(Self::MOST) | ((status as u32 + 1) << 24))
    }
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

/// The codes of phases. `Phase::Off` with the first status is `OFF`.
const IDLE: u8 = 0;
const ROUGH: u8 = 1;
const BASELINE: u8 = 2;
const RUNNING: u8 = 3;
const OFF: u8 = 16;

impl Phase {
    fn code(self) -> u8 {
        match self {
            Self::Idle => IDLE,
            Self::Rough => ROUGH,
            Self::Baseline => BASELINE,
            Self::Running => RUNNING,
            Self::Off(status) => OFF + status as u8,
        }
    }

    fn from_code(code: u8) -> Self {
        match code {
            IDLE => Self::Idle,
            ROUGH => Self::Rough,
            BASELINE => Self::Baseline,
            RUNNING => Self::Running,
            off => Self::Off(Status::from_code(off.wrapping_sub(OFF))),
        }
    }
}

impl ClockState {
    /// The counter's rate in Hz, once it is measured.
    pub(super) fn frequency(&self) -> Option<u64> {
        (self.phase == Phase::Running).then(|| segment::frequency(self.base_rate))
    }

    #[inline]
    pub(super) fn to_update(self) -> Update<WORDS, HOT> {
        let (flags, hot) = self.hot();
        Update { words: self.to_words(), hot, late: self.offset as u64, flags }
    }

    /// The flags and the hot words: the segment with its fresh span, or, while the counter is not
    /// used, minus the check time.
    #[inline]
    fn hot(&self) -> (usize, [u64; HOT]) {
        let Segment { start, nanos, rate, span } = self.segment;
        let next = self.sampled.nanos;
        match self.phase {
            Phase::Running => (RESTS, [start, nanos, rate, self.segment.fresh_span()]),
            // No segment will follow, so none is due: all of the span is used.
            _ if span > 0 => (0, [start, nanos, rate, span]),
            Phase::Off(_) if nanos == 0 => (NO_SEGMENT | NOT_USED, [0, 0, 0, next.wrapping_neg()]),
            Phase::Rough | Phase::Baseline => {
                (NO_SEGMENT | RESTS, [0, next.saturating_add(OLD).max(nanos), 0, 0])
            }
            Phase::Idle | Phase::Off(_) => (NO_SEGMENT, [0; HOT]),
        }
    }

    #[inline]
    fn to_words(self) -> [u64; WORDS] {
        let Self { segment, tally, .. } = self;
        let progress = u32::from_le_bytes([self.phase.code(), self.spoilt, self.unsteady, 0]);
        [
            segment.start,
            segment.nanos,
            segment.rate,
            segment.span,
            self.offset as u64,
            join(progress, self.cost.try_into().unwrap_or(u32::MAX)),
            self.sampled.nanos,
            self.base_rate,
            self.sampled.ticks,
            0,
            self.checked,
            self.raw_offset as u64,
            tally.segments,
            join(tally.calibrations, tally.refusals.0),
            join(tally.last_error, tally.largest_error),
            self.marked,
        ]
    }

    #[inline]
    pub(super) fn from_words(words: &[u64; WORDS]) -> Self {
        let [start, nanos, rate, span, offset, progress, sampled, base_rate, more @ ..] = *words;
        let [ticks, _, checked, raw_offset, segments, counts, errors, marked] = more;
        let (progress, cost) = split(progress);
        let [phase, spoilt, unsteady, _] = progress.to_le_bytes();
        let (calibrations, refusals) = split(counts);
        let (last_error, largest_error) = split(errors);
        let refusals = Refusals(refusals);
        Self {
            segment: Segment { start, nanos, rate, span },
            offset: offset as i64,
            sampled: Sample { ticks, nanos: sampled },
            base_rate,
            cost: cost.into(),
            checked,
            marked,
            raw_offset: raw_offset as i64,
            phase: Phase::from_code(phase),
            spoilt,
            unsteady,
            tally: Tally { segments, calibrations, refusals, last_error, largest_error },
        }
    }

    /// The segment in the words of a state.
    pub(super) fn segment_of(words: &[Word; WORDS]) -> Segment {
        let [start, nanos, rate, span, ..] = words;
        Segment { start: start.load(), nanos: nanos.load(), rate: rate.load(), span: span.load() }
    }
}

fn join(low: u32, high: u32) -> u64 {
    u64::from(low) | (u64::from(high) << 32)
}

fn split(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

/// Reads the counter and returns the time of the tick, if the segment is fresh.
///
/// Without a segment it does not read the counter, because the thread may not be allowed to.
/// The branch also orders `isb` and `CNTVCTSS_EL0` after the load of `flags` (Arm Architecture
/// Reference Manual, D12.2).
#[inline]
pub(super) fn fresh_monotonic(flags: usize, hot: &[Word; HOT], ticks: impl FnOnce() -> u64) -> Option<u64> {
    if flags & (NO_SEGMENT | WRITER) != 0 {
        return None;
    }
    let [start, nanos, rate, fresh_span] = hot;
    let past = ticks().wrapping_sub(start.load());
    // No segment has more than 2^32 ticks. On x86 the low 32 bits are ready earlier than all 64.
    let nanos = nanos.load().wrapping_add(segment::nanos(u64::from(past as u32), rate.load()));
    (past < fresh_span.load()).then_some(nanos)
}

/// Whether a sparse read may answer by the vDSO and update nothing, as far as the counter shows.
/// The tick must be two fresh spans or more after the start of the segment, if there is one.
#[inline]
pub(super) fn may_rest(flags: usize, hot: &[Word; HOT], ticks: impl FnOnce() -> u64) -> bool {
    let [start, .., fresh_span] = hot;
    let is_far =
        || ticks().wrapping_sub(start.load()).wrapping_sub(fresh_span.load().wrapping_mul(2)) as i64 >= 0;
    flags & (RESTS | WRITER) == RESTS && (flags & NO_SEGMENT != 0 || is_far())
}

/// Whether the vDSO's answer `now` agrees with [`may_rest`]: it is at or after the time of the tick
/// two fresh spans after the start. During a calibration, the last sample must be too old to use.
#[inline]
pub(super) fn rests(hot: &[Word; HOT], now: u64) -> bool {
    let [_, nanos, rate, fresh_span] = hot;
    let end = nanos.load().wrapping_add(segment::nanos(fresh_span.load().wrapping_mul(2), rate.load()));
    now.wrapping_sub(end) as i64 >= 0
}

/// Whether the counter is refused and `now` is before the check time, by at most
/// [`LONGEST_RETRY`]. In other states the word at [`CHECK`] is a small number, so this is false.
#[inline]
pub(super) fn is_refused(check: &Word, now: u64) -> bool {
    now.wrapping_add(check.load()) >= LONGEST_RETRY.wrapping_neg()
}
