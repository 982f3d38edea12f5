//! The true time, between two limits: the kernel's wall clock and what it knows of its error.
//!
//! adjtimex(2) returns both at one moment. They are kept with the offset of the wall clock from the
//! monotonic clock at that moment, for a second or until the wall clock is set. So the limits are
//! those of one state of the wall clock, and a step between two reads cannot mix two states.

use super::clock::CounterClock;
use super::latch::{Latch, Update};
use super::sample::Source;

/// The longest time for which an answer of the kernel is used, in nanoseconds.
const LIFE: u64 = 1_000_000_000;
/// The kernel lets `maxerror` grow by 500 ppm (kernel/time/ntp.c, `MAXFREQ`), once a second. So an
/// answer can lack the growth of a second.
const GROWTH: u64 = 500_000;
const STEP: u64 = 1_000_000_000;
/// A smaller difference of two offsets, in nanoseconds, is an error of the measurement.
const NOISE: i64 = 1_000;

/// The least and the greatest possible true time, in nanoseconds since the Epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) times: [i64; 2],
    pub(crate) is_synchronized: bool,
}

/// An answer that is kept.
#[derive(Clone, Copy)]
struct Kept {
    /// The monotonic time before the kernel was asked. 0 if it was not.
    at: u64,
    /// The least and the greatest possible offset of the wall clock then.
    offset: [i64; 2],
    max_error: u64,
    growth: u64,
    is_synchronized: bool,
}

impl Kept {
    fn from_words([at, low, high, max_error, growth, is_synchronized]: [u64; 6]) -> Self {
        let offset = [low as i64, high as i64];
        Self { at, offset, max_error, growth, is_synchronized: is_synchronized != 0 }
    }

    fn to_words(self) -> [u64; 6] {
        let [low, high] = self.offset;
        [self.at, low as u64, high as u64, self.max_error, self.growth, self.is_synchronized.into()]
    }

    fn is_current(&self, now: u64, offset: i64) -> bool {
        let [low, high] = self.offset;
        now.wrapping_sub(self.at) < LIFE
            && (low.saturating_sub(NOISE)..=high.saturating_add(NOISE)).contains(&offset)
    }

    /// The limits at a time that may be off by `bound`.
    fn limits(&self, now: u64, bound: u64) -> Limits {
        let passed = now.saturating_sub(self.at).saturating_add(bound).saturating_add(STEP);
        let grown = (u128::from(passed) * u128::from(self.growth)).div_ceil(1_000_000_000) as u64;
        let error = self.max_error.saturating_add(grown).saturating_add(bound);
        let [low, high] = self.offset.map(|offset| (now as i64).saturating_add(offset));
        let times = [low.saturating_sub_unsigned(error), high.saturating_add_unsigned(error)];
        Limits { times, is_synchronized: self.is_synchronized }
    }
}

/// The last answer of the kernel, for every thread.
#[repr(C)]
pub(crate) struct Bounds(Latch<6, 0, ()>);

impl Bounds {
    pub(crate) const fn new() -> Self {
        Self(Latch::new(0, ()))
    }

    /// The limits of the true time, if no sandbox denies them and the kernel may be asked.
    pub(crate) fn limits<S: Source>(&self, clock: &CounterClock<S>) -> Option<Limits> {
        let offset = clock.offset()?;
        let read = || {
            // A segment may end between the two.
            let bound = clock.state().error_bound;
            let nanos = clock.monotonic_ordered().or_else(|| clock.slow_monotonic())?;
            Some((nanos, bound.max(clock.state().error_bound)))
        };
        let (now, bound) = read()?;
        let (version, words) = self.0.snapshot();
        let kept = Kept::from_words(words);
        if kept.is_current(now, offset) {
            return Some(kept.limits(now, bound));
        }
        let at = clock.may_check().then(|| clock.source().monotonic())??;
        let answer = clock.source().discipline()?;
        let after = clock.source().monotonic()?;
        let kept = Kept {
            at,
            offset: [after, at].map(|monotonic| answer.realtime.wrapping_sub(monotonic as i64)),
            max_error: answer.max_error,
            growth: GROWTH.saturating_add(answer.slew),
            is_synchronized: answer.is_synchronized,
        };
        self.0.update(version, &Update { words: kept.to_words(), hot: [], late: 0, flags: 0 });
        let (now, bound) = read()?;
        Some(kept.limits(now, bound))
    }
}
