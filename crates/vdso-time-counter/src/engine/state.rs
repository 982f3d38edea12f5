//! [`ClockState`]: everything that is known about the counter, as the words of the latch.

use core::time::Duration;

use vdso_time::Timespec;

use super::latch::Word;
use super::sample::Sample;
use super::segment::{self, Rate, Segment, scale};
use super::source::{Keeper, Source};
use super::status::{Statistics, Unavailable};

/// The age in nanoseconds above which no rate is computed from a sample, because the system may
/// have been suspended since.
pub(crate) const OLD: u64 = 1_000_000_000;
/// The longest time after which an unavailable counter is checked again, in nanoseconds.
pub(crate) const LONGEST_RETRY: u64 = 640_000_000_000;

/// The value of [`ClockState::pending`] during the calibration if `CLOCK_MONOTONIC_RAW` could not
/// be read. It is not 0, because 0 is the real difference until NTP changes the kernel's rate.
pub(crate) const NO_RAW_OFFSET: i64 = i64::MIN;

/// The progress of the calibration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing is known.
    Idle,
    /// There is a sample, from which a rough rate will follow.
    Rough,
    /// There are a rough rate and a good sample. The precise rate will be computed from this sample
    /// and a later one.
    Baseline,
    /// There is a segment.
    Running,
    /// The counter is not used.
    Off,
}

impl Phase {
    /// Decodes the phase without a table. A table would be on another page, and a sparse read would
    /// have to load that page.
    fn from_code(code: u8) -> Self {
        match code {
            0 => Self::Idle,
            1 => Self::Rough,
            2 => Self::Baseline,
            3 => Self::Running,
            _ => Self::Off,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClockState {
    /// The last segment. If the counter becomes unavailable, the segment is still used until it
    /// ends.
    pub(crate) segment: Segment,
    /// `CLOCK_REALTIME` minus `CLOCK_MONOTONIC`, in nanoseconds.
    pub(crate) offset: i64,
    /// The last sample. While the counter is unavailable, the time of this sample is the *check
    /// time*, at which the kernel must be asked again.
    pub(crate) sampled: Sample,
    /// The measured rate. The segment's rate is this one plus a correction.
    pub(crate) base_rate: Rate,
    /// The least number of ticks that a sample took. It is stored in 32 bits, at most `u32::MAX`.
    pub(crate) cost: u64,
    /// When the kernel was last asked for its clock source.
    pub(crate) checked: u64,
    /// The sample at which the baseline begins.
    pub(crate) first: Sample,
    /// During the calibration, `CLOCK_MONOTONIC_RAW` minus `CLOCK_MONOTONIC` at the last sample, or
    /// [`NO_RAW_OFFSET`]. Afterwards, a suspected change of the kernel's rate, or 0. The change is
    /// only suspected, because the last sample looks the same if the kernel's clock stepped. The
    /// next sample tells the two apart.
    pub(crate) pending: i64,
    pub(crate) phase: Phase,
    /// Who maintains the clock source, if the kernel was asked.
    pub(crate) keeper: Keeper,
    /// Why the counter is unavailable, or why it last was.
    pub(crate) unavailable: Option<Unavailable>,
    /// How many calibrations in a row were corrupted.
    pub(crate) corrupted: u8,
    /// For how many more segments the kernel's rate is expected to change.
    pub(crate) unsteady: u8,
    // The numbers for the statistics. Errors are in nanoseconds.
    pub(crate) segments: u64,
    pub(crate) calibrations: u32,
    pub(crate) times_unavailable: u32,
    pub(crate) last_error: u32,
    pub(crate) largest_error: u32,
}

impl ClockState {
    /// Counts a segment, and the error that it removes.
    pub(crate) fn made(&mut self, error: u64) {
        self.segments = self.segments.wrapping_add(1);
        self.last_error = error.try_into().unwrap_or(u32::MAX);
        self.largest_error = self.largest_error.max(self.last_error);
    }

    /// Returns the ticks of the baseline, and the nanoseconds that they took.
    fn baseline(&self) -> Option<Sample> {
        if self.phase != Phase::Running {
            return None;
        }
        let last = self.sampled.centred(self.cost);
        Some(Sample {
            ticks: last.ticks.wrapping_sub(self.first.ticks),
            nanos: last.nanos.wrapping_sub(self.first.nanos),
        })
    }

    /// Returns the counter's mean rate in Hz since the baseline began.
    pub(crate) fn frequency(&self) -> Option<u64> {
        let Sample { ticks, nanos } = self.baseline()?;
        Some(scale(1_000_000_000, ticks, nanos))
    }

    /// Returns the time of a tick that no segment covers any more, computed from the baseline.
    pub(crate) fn nanos_of(&self, tick: u64) -> Option<u64> {
        let Sample { ticks, nanos } = self.baseline()?;
        let last = self.sampled.centred(self.cost);
        let since = tick.wrapping_sub(last.ticks);
        if since as i64 >= 0 {
            return Some(last.nanos.saturating_add(scale(since, nanos, ticks)));
        }
        let before = scale(since.wrapping_neg(), nanos, ticks);
        Some(last.nanos.saturating_sub(before))
    }

    /// Returns whether the counter is unavailable, and the last segment has ended.
    pub(crate) fn is_off(&self) -> bool {
        self.phase == Phase::Off && self.segment.span == 0 && self.segment.nanos == 0
    }

    /// Returns whether the offset of the wall clock was measured.
    pub(crate) fn has_offset(&self) -> bool {
        self.phase != Phase::Idle || self.calibrations > 0
    }

    /// Returns the longest time that an undisturbed turn takes, in nanoseconds, or 0 if the rate is
    /// not known. A turn is one read of each of two of the kernel's clocks.
    pub(crate) fn turn(&self) -> u64 {
        let ticks = self.cost.saturating_add(1).saturating_mul(3);
        segment::long_nanos(ticks, self.base_rate)
    }

    /// Returns the statistics with the numbers that the state contains. The other numbers are 0,
    /// and the clock sets them.
    pub(crate) fn statistics(&self) -> Statistics {
        let nanos = |error: u32| Duration::from_nanos(error.into());
        Statistics {
            segments: self.segments,
            calibrations: self.calibrations.into(),
            times_unavailable: self.times_unavailable.into(),
            last_unavailable: self.unavailable,
            steps: 0,
            wall_steps: 0,
            vdso_reads: 0,
            last_error: nanos(self.last_error),
            largest_error: nanos(self.largest_error),
        }
    }

    #[inline]
    pub(crate) fn to_words(self) -> [u64; WORDS] {
        let segment = self.segment;
        // The number of ticks that a fast read may use: the ticks until the next segment is due, or
        // all of them if no segment will follow.
        let fresh_span = if self.phase == Phase::Running {
            segment.fresh_span()
        } else {
            segment.span
        };
        let rate = if self.is_off() {
            NOT_USED
        } else {
            segment.rate
        };
        let mut reason = self.unavailable.map_or(0, |reason| reason as u8 + 1);
        if self.keeper == Keeper::Hypervisor {
            reason |= HYPERVISOR;
        }
        let progress =
            u32::from_le_bytes([self.phase as u8, self.corrupted, self.unsteady, reason]);
        [
            segment.start,
            segment.nanos,
            rate,
            fresh_span,
            join(progress, self.cost.try_into().unwrap_or(u32::MAX)),
            wall_word((segment.nanos as i64).wrapping_add(self.offset)),
            self.sampled.nanos,
            self.sampled.ticks,
            self.base_rate,
            self.checked,
            self.pending as u64,
            self.first.ticks,
            self.first.nanos,
            self.segments,
            join(self.calibrations, self.times_unavailable),
            join(self.last_error, self.largest_error),
        ]
    }

    #[inline]
    #[expect(clippy::too_many_lines, reason = "a name for each word")]
    pub(crate) fn from_words(words: &[u64; WORDS]) -> Self {
        let [
            start,
            nanos,
            rate,
            fresh_span,
            progress,
            wall,
            sampled,
            ticks,
            base_rate,
            more @ ..,
        ] = *words;
        let [
            checked,
            pending,
            first_ticks,
            first_nanos,
            segments,
            counts,
            errors,
        ] = more;
        let rate = if rate == NOT_USED { 0 } else { rate };
        let (progress, cost) = split(progress);
        let [phase, corrupted, unsteady, reason] = progress.to_le_bytes();
        let keeper = if reason & HYPERVISOR == 0 {
            Keeper::Kernel
        } else {
            Keeper::Hypervisor
        };
        let reason = reason & !HYPERVISOR;
        let (calibrations, times_unavailable) = split(counts);
        let (last_error, largest_error) = split(errors);
        Self {
            segment: Segment {
                start,
                nanos,
                rate,
                span: span_of(fresh_span),
            },
            offset: offset(wall, nanos),
            sampled: Sample {
                ticks,
                nanos: sampled,
            },
            base_rate,
            cost: cost.into(),
            checked,
            first: Sample {
                ticks: first_ticks,
                nanos: first_nanos,
            },
            pending: pending as i64,
            phase: Phase::from_code(phase),
            keeper,
            unavailable: Unavailable::ALL
                .get(usize::from(reason).wrapping_sub(1))
                .copied(),
            corrupted,
            unsteady,
            segments,
            calibrations,
            times_unavailable,
            last_error,
            largest_error,
        }
    }
}

/// Returns the span of a segment, given the number of ticks that a fast read may use. The span is a
/// power of two, and that number is the span or slightly less.
fn span_of(fresh_span: u64) -> u64 {
    if fresh_span == 0 {
        0
    } else {
        fresh_span.next_power_of_two()
    }
}

fn join(low: u32, high: u32) -> u64 {
    u64::from(low) | (u64::from(high) << 32)
}

fn split(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

/// The value in the rate's word while the counter is not used and the last segment has ended. No
/// real rate is so large, so a read needs only this one word to find out that it must call the
/// vDSO.
const NOT_USED: u64 = u64::MAX;

/// The bit that is set if the keeper is [`Keeper::Hypervisor`]. It shares a byte with the reason.
const HYPERVISOR: u8 = 0x80;

const NANOS_PER_SEC: i64 = 1_000_000_000;
/// The number of bits that hold the nanoseconds of a second.
const NANOS_BITS: u32 = 30;

pub(crate) const WORDS: usize = 16;

pub(crate) type Words = [Word; WORDS];

// The indices of the words that are read without the others.
const START: usize = 0;
const NANOS: usize = 1;
const RATE: usize = 2;
const FRESH_SPAN: usize = 3;
const PROGRESS: usize = 4;
pub(crate) const WALL: usize = 5;
const SAMPLED: usize = 6;

pub(crate) fn segment_of(words: &Words) -> Segment {
    Segment {
        start: words[START].load(),
        nanos: words[NANOS].load(),
        rate: words[RATE].load(),
        span: span_of(words[FRESH_SPAN].load()),
    }
}

/// Encodes the wall clock at the first tick of the segment: nanoseconds below a second in the
/// lowest bits, and above them the seconds, in which the years 1698 to 2242 fit. The kernel allows
/// no time after the year 2232.
pub(crate) fn wall_word(nanos: i64) -> u64 {
    let Timespec { tv_sec, tv_nsec } = Timespec::from_nanos(nanos);
    ((tv_sec << NANOS_BITS) | tv_nsec) as u64
}

#[inline]
fn wall(word: u64) -> Timespec {
    Timespec {
        tv_sec: word as i64 >> NANOS_BITS,
        tv_nsec: (word & ((1 << NANOS_BITS) - 1)) as i64,
    }
}

#[inline]
fn offset(wall_word: u64, nanos: u64) -> i64 {
    (wall(wall_word).as_nanos() as i64).wrapping_sub(nanos as i64)
}

/// Returns [`ClockState::turn`], computed with the segment's rate.
#[inline]
pub(crate) fn turn_of(words: &Words) -> u64 {
    let (_, cost) = split(words[PROGRESS].load());
    segment::nanos(3 * (u64::from(cost) + 1), words[RATE].load())
}

#[inline]
pub(crate) fn offset_of(words: &Words) -> i64 {
    offset(words[WALL].load(), words[NANOS].load())
}

/// Returns the time of the wall clock `passed` nanoseconds after the start of the segment.
/// `wall_word` encodes the wall clock's time at the start (see [`wall_word`]). `passed` is less
/// than a second, so no division is needed.
#[inline]
pub(crate) fn realtime_after(wall_word: u64, passed: u64) -> Timespec {
    let Timespec { tv_sec, tv_nsec } = wall(wall_word);
    let tv_nsec = tv_nsec.wrapping_add(passed as i64);
    if tv_nsec < NANOS_PER_SEC {
        return Timespec { tv_sec, tv_nsec };
    }
    Timespec {
        tv_sec: tv_sec + 1,
        tv_nsec: tv_nsec - NANOS_PER_SEC,
    }
}

/// Reads the counter. Returns the time of the first tick of the segment and the nanoseconds since,
/// if the segment is fresh.
///
/// If there is no segment (`fresh_span` is 0), the function returns before it reads the counter,
/// because the thread might not be allowed to read it. On aarch64 and arm, this branch has a second
/// purpose: the barrier `isb`, and on aarch64 the read of `CNTVCTSS_EL0`, wait for the load of
/// `fresh_span`, because the branch depends on that load (Arm Architecture Reference Manual, D12.2
/// and G6.2).
#[inline]
pub(crate) fn fresh<S: Source>(words: &Words, ticks: impl FnOnce() -> u64) -> Option<[u64; 2]> {
    let fresh_span = words[FRESH_SPAN].load();
    if fresh_span == 0 {
        return None;
    }
    let tick = ticks();
    let start = words[START].load();
    let past = tick.wrapping_sub(start);
    // No segment has more than 2^32 ticks, so the low half of `past` is enough for the time.
    let low = S::low_half(tick).wrapping_sub(start as u32);
    let passed = segment::nanos(low.into(), words[RATE].load());
    (past < fresh_span).then(|| [words[NANOS].load(), passed])
}

/// Returns whether, according to the counter, a read is sparse, so that the vDSO may answer it (see
/// `CounterClock::sparse`). While the clock runs, two fresh spans or more must have passed since
/// the start of the segment. During a calibration, there must be a sample and no segment.
#[inline]
pub(crate) fn may_be_sparse(words: &Words, ticks: impl FnOnce() -> u64) -> bool {
    let phase = Phase::from_code(words[PROGRESS].load() as u8);
    let fresh_span = words[FRESH_SPAN].load();
    if phase == Phase::Running {
        return ticks()
            .wrapping_sub(words[START].load())
            .wrapping_sub(fresh_span.wrapping_mul(2)) as i64
            >= 0;
    }
    fresh_span == 0 && (phase == Phase::Rough || phase == Phase::Baseline)
}

/// Returns whether `now`, the vDSO's answer, confirms [`may_be_sparse`]: two fresh spans or more
/// have passed according to this time as well. During a calibration, the last sample must be too
/// old to use.
#[inline]
pub(crate) fn is_sparse(words: &Words, now: u64) -> bool {
    let nanos = words[NANOS].load();
    let end = match words[FRESH_SPAN].load() {
        0 => nanos.max(words[SAMPLED].load().saturating_add(OLD)),
        fresh_span => nanos.wrapping_add(segment::nanos(
            fresh_span.wrapping_mul(2),
            words[RATE].load(),
        )),
    };
    now.wrapping_sub(end) as i64 >= 0
}

/// Returns whether the counter is not used, and the last segment has ended.
#[inline]
pub(crate) fn is_off(words: &Words) -> bool {
    words[RATE].load() == NOT_USED
}

/// Returns whether `now` is before the check time, by at most [`LONGEST_RETRY`].
#[inline]
pub(crate) fn is_before_check(words: &Words, now: u64) -> bool {
    now.wrapping_sub(words[SAMPLED].load()) >= LONGEST_RETRY.wrapping_neg()
}
