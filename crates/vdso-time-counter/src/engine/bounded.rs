//! The true time, between two limits: the kernel's wall clock and what it knows of its error.
//!
//! adjtimex(2) returns both at one moment. They are kept with the clock's offset at that moment,
//! for a second or until the wall clock is set. So a step between two reads cannot mix two states.
//!
//! A program states the error once a minute or less often, and the kernel adds 500 us to `maxerror`
//! each second. The first answer after a statement is kept too, as the *statement*. From there the
//! bound grows by the *drift*, a rate that the user can choose.

use vdso_time::{Errno, SystemTime};

use super::clock::CounterClock;
use super::interval::{ClockStatus, Interval};
use super::latch::Latch;
use super::source::{Source, Timex};

const SECOND: u64 = 1_000_000_000;
/// The longest time for which an answer of the kernel is used.
const LIFE: u64 = SECOND;
/// What the kernel adds to `maxerror` each second, in nanoseconds (kernel/time/ntp.c, `MAXFREQ`).
pub(crate) const GROWTH: u64 = 500_000;
/// `maxerror` of a clock that is not synchronized: `NTP_PHASE_LIMIT`.
const LIMIT: u64 = 16 * SECOND;
/// A smaller difference of two offsets, in nanoseconds, is an error of the measurement.
const NOISE: i64 = 1_000;
/// `maxerror`, `offset` and the time itself can be whole microseconds, rounded down.
const ROUNDING: u64 = 3_000;
/// The kernel inserts or deletes a second at midnight, by its next timer tick.
const NEAR_MIDNIGHT: i64 = 2 * SECOND as i64;
const DAY: i64 = 86_400 * SECOND as i64;

/// The last answer of the kernel.
#[derive(Clone, Copy)]
struct Kept {
    /// The monotonic time before the kernel was asked.
    at: u64,
    /// The least and the greatest possible offset of the wall clock then.
    offset: [i64; 2],
    answer: Timex,
    /// The first answer since the last statement: its time, and `max_error`.
    stated_at: u64,
    stated: u64,
    /// The VM clock's marker, and whether no error was stated since it changed.
    marker: u64,
    is_disrupted: bool,
}

impl Kept {
    fn from_words(words: [u64; WORDS]) -> Option<Self> {
        let [at, low, high, realtime, max_error, pending, esterror, freq, slew, flags, more @ ..] = words;
        let ([stated_at, stated, marker], written) = (more, [esterror, freq]);
        let (realtime, offset) = (realtime as i64, [low as i64, high as i64]);
        let [is_synchronized, has_leap, has_pps, is_disrupted, is_kept] =
            [0, 1, 2, 3, 4].map(|bit| flags & (1 << bit) != 0);
        let answer =
            Timex { realtime, max_error, pending, written, slew, is_synchronized, has_leap, has_pps };
        is_kept.then_some(Self { at, offset, answer, stated_at, stated, marker, is_disrupted })
    }

    fn to_words(self) -> [u64; WORDS] {
        let Self { at, offset: [low, high], answer, stated_at, stated, marker, is_disrupted } = self;
        let Timex { realtime, max_error, pending, written: [esterror, freq], slew, .. } = answer;
        let flags = [answer.is_synchronized, answer.has_leap, answer.has_pps, is_disrupted, true];
        let flags = flags.iter().rev().fold(0, |flags, &flag| (flags << 1) | u64::from(flag));
        let (low, high, realtime) = (low as u64, high as u64, realtime as u64);
        [at, low, high, realtime, max_error, pending, esterror, freq, slew, flags, stated_at, stated, marker]
    }

    /// The next answer to keep, if the kernel gave `answer` between two times.
    fn next(previous: Option<Self>, [at, after]: [u64; 2], answer: Timex, marker: u64) -> Self {
        let offset = [after, at].map(|monotonic| answer.realtime.wrapping_sub(monotonic as i64));
        let new = Self {
            at,
            offset,
            answer,
            stated_at: at,
            stated: answer.max_error,
            marker,
            // A marker is 0 unless the machine was disrupted before, perhaps a moment ago.
            is_disrupted: marker != 0 && answer.max_error < LIMIT,
        };
        let Some(old) = previous else { return new };
        // Without a statement `maxerror` can only have grown, by `GROWTH` each second.
        let is_whole = |from: u64| {
            let grown = answer.max_error.checked_sub(from).filter(|grown| grown % GROWTH == 0);
            grown.map(|grown| grown / GROWTH)
        };
        let is_surely_stated = is_whole(old.answer.max_error).is_none();
        let seconds = at.wrapping_sub(old.stated_at) / SECOND;
        let may_be_stated = answer.written != old.answer.written
            || is_whole(old.stated).is_none_or(|steps| steps > seconds + 1);
        // A program that sets the wall clock sets `maxerror`. A resume after a suspend does not.
        let is_jump = !overlap(old.offset, new.offset) && !old.is_near_leap(old.wall(at));
        // At 16 s, only a statement can make it known again.
        let is_disrupted = answer.max_error < LIMIT
            && (marker != old.marker || ((old.is_disrupted || is_jump) && !is_surely_stated));
        let from = if may_be_stated { new } else { old };
        Self { is_disrupted, stated_at: from.stated_at, stated: from.stated, ..new }
    }

    fn is_current(&self, now: u64, offset: i64, marker: u64) -> bool {
        now.wrapping_sub(self.at) < LIFE && marker == self.marker && overlap(self.offset, [offset; 2])
    }

    /// The least possible time of the wall clock.
    fn wall(&self, now: u64) -> i64 {
        (now as i64).saturating_add(self.offset[0])
    }

    fn is_near_leap(&self, wall: i64) -> bool {
        let after_midnight = wall.saturating_add(NEAR_MIDNIGHT).rem_euclid(DAY);
        self.answer.has_leap && after_midnight < 2 * NEAR_MIDNIGHT
    }

    /// What is known of the error at a time of the wall clock.
    fn status(&self, wall: i64, marker: u64) -> ClockStatus {
        let Timex { max_error, is_synchronized, has_pps, .. } = self.answer;
        // What was written grows by the same amount each second. If it was 0, nothing remains.
        let is_stated = max_error % GROWTH != 0 && max_error < LIMIT;
        if self.is_disrupted || marker != self.marker {
            ClockStatus::Disrupted
        } else if !is_stated || has_pps || self.is_near_leap(wall) {
            ClockStatus::Unknown
        } else if is_synchronized {
            ClockStatus::Synchronized
        } else {
            ClockStatus::FreeRunning
        }
    }

    /// The limits at a time that may be off by `bound`. The marker was read after the time.
    fn limits(&self, [now, bound]: [u64; 2], marker: u64, drift: u32) -> Interval {
        let status = self.status(self.wall(now), marker);
        let interval = |limits: [i64; 2]| {
            let [earliest, latest] = limits.map(|nanos| SystemTime::from_clock_nanos(nanos.into()));
            Interval::new(earliest, latest, status)
        };
        if !status.is_bounded() {
            return interval([i64::MIN, i64::MAX]);
        }
        let since = |at: u64| now.saturating_sub(at).saturating_add(bound);
        // The kernel adds once a second, so the first answer can lack the growth of a second.
        let drifted = part(since(self.stated_at).saturating_add(SECOND), drift.into());
        let slewed = part(since(self.at), self.answer.slew);
        // The kernel takes a second's part out of `offset` when that second begins: at most 1/4.
        let pending = self.answer.pending.saturating_add(self.answer.pending.div_ceil(3));
        let parts = [self.stated, pending, drifted, slewed, bound, ROUNDING];
        let error = parts.into_iter().fold(0, u64::saturating_add);
        let [low, high] = self.offset.map(|offset| (now as i64).saturating_add(offset));
        interval([low.saturating_sub_unsigned(error), high.saturating_add_unsigned(error)])
    }
}

/// So many parts per billion of a time, rounded up.
fn part(nanos: u64, ppb: u64) -> u64 {
    let seconds = (nanos / SECOND).saturating_mul(ppb);
    seconds.saturating_add((nanos % SECOND).saturating_mul(ppb).div_ceil(SECOND))
}

/// Whether two measurements of an offset agree.
fn overlap([low, high]: [i64; 2], [other_low, other_high]: [i64; 2]) -> bool {
    low.saturating_sub(NOISE) <= other_high && other_low <= high.saturating_add(NOISE)
}

const WORDS: usize = 13;

/// The last answer of the kernel, for every thread.
///
/// Its alignment keeps it in one page: see `BOUNDS`.
#[repr(align(256))]
pub(crate) struct Bounds(Latch<WORDS>);

impl Bounds {
    pub(crate) const fn new() -> Self {
        Self(Latch::new())
    }

    /// The error is adjtimex's, or `EPERM` if a sandbox denies the clocks.
    pub(crate) fn limits<S: Source>(&self, clock: &CounterClock<S>, drift: u32) -> Result<Interval, Errno> {
        let source = clock.source();
        let monotonic = || source.monotonic().ok_or(Errno::EPERM);
        let read = || {
            // The bound is taken before and after the time, because a segment may end meanwhile.
            let bound = || clock.error_bound().ok_or(Errno::EPERM);
            let before = bound()?;
            let nanos = clock.monotonic_ordered().or_else(|| clock.slow_monotonic());
            Ok([nanos.ok_or(Errno::EPERM)?, before.max(bound()?)])
        };
        let offset = clock.offset().ok_or(Errno::EPERM)?;
        let time = read()?;
        // Read after the time, so that it shows every disruption before the time.
        let marker = source.marker();
        let (version, words) = self.0.snapshot();
        let previous = Kept::from_words(words);
        if let Some(kept) = previous.filter(|kept| kept.is_current(time[0], offset, marker)) {
            return Ok(kept.limits(time, marker, drift));
        }
        if !clock.may_check() {
            return Err(Errno::EPERM);
        }
        let (at, answer) = (monotonic()?, source.timex()?);
        let kept = Kept::next(previous, [at, monotonic()?], answer, source.marker());
        self.0.update(version, &kept.to_words());
        let time = read()?;
        Ok(kept.limits(time, source.marker(), drift))
    }
}
