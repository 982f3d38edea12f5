//! [`History`]: times of both clocks since the counter was measured, for ticks that no segment
//! covers any more.
//!
//! It has four samples: the first one, two *marks*, and the last one, which is in the state. Once a
//! second the last sample becomes the younger mark, and the younger mark the older one.
//!
//! - The line from the older mark to the last sample has the kernel's rate of the last 1 to 3 s.
//! - The line from the first sample to the older mark converts earlier ticks.

use super::latch::{Latch, Update};
use super::sample::Sample;
use super::state::{ClockState, Phase};

/// The age at which the younger mark becomes the older one, in nanoseconds.
pub(super) const MARK: u64 = 1_000_000_000;
/// The shortest baseline, in nanoseconds: that of the calibration.
const SHORTEST: u64 = 10_000_000;

/// The number of ticks that took some nanoseconds of `CLOCK_MONOTONIC`, from
/// [`baseline`](super::baseline).
///
/// Both numbers have an error of a read of both clocks, tens of nanoseconds. So the rate has an
/// error of some parts per billion after a minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Baseline {
    /// The number of [`ticks`](super::ticks).
    pub ticks: u64,
    /// The nanoseconds that they took.
    pub nanos: u64,
}

impl Baseline {
    /// Returns the nanoseconds that some ticks take, saturating.
    #[must_use]
    pub fn nanos_of(&self, ticks: u64) -> u64 {
        scale(ticks, self.nanos, self.ticks)
    }

    /// Returns the number of ticks per second.
    #[must_use]
    pub fn frequency(&self) -> u64 {
        scale(1_000_000_000, self.ticks, self.nanos)
    }
}

/// `number` x `numerator` / `denominator`, rounded.
fn scale(number: u64, numerator: u64, denominator: u64) -> u64 {
    let product = u128::from(number) * u128::from(numerator) + u128::from(denominator / 2);
    product.checked_div(denominator.into()).map_or(0, |result| result.try_into().unwrap_or(u64::MAX))
}

/// The samples since the counter was measured, oldest first: the first, two marks, the last.
#[derive(Clone, Copy)]
struct Samples([Sample; 4]);

impl Samples {
    /// Returns `None` before the first sample.
    fn from_words([t0, n0, t1, n1, t2, n2]: [u64; 6], state: &ClockState) -> Option<Self> {
        let [first, older, younger] =
            [(t0, n0), (t1, n1), (t2, n2)].map(|(ticks, nanos)| Sample { ticks, nanos });
        let last = state.sampled.centred(state.cost);
        (n2 != 0).then_some(Self([first, older, younger, last]))
    }

    /// The time of a tick, given the rate of a short baseline.
    fn at(&self, ticks: u64, short: Baseline) -> u64 {
        let [first, older, _, last] = self.0;
        let is_old = is_before(ticks, older.ticks) && first != older;
        let (from, to) = if is_old { (first, older) } else { (older, last) };
        let baseline = between(from, to).unwrap_or(short);
        if is_before(ticks, to.ticks) {
            to.nanos.saturating_sub(baseline.nanos_of(to.ticks.wrapping_sub(ticks)))
        } else {
            to.nanos.saturating_add(baseline.nanos_of(ticks.wrapping_sub(to.ticks)))
        }
    }
}

fn between(from: Sample, to: Sample) -> Option<Baseline> {
    let (ticks, nanos) = (to.ticks.wrapping_sub(from.ticks), to.nanos.wrapping_sub(from.nanos));
    (nanos >= SHORTEST && ticks > 0).then_some(Baseline { ticks, nanos })
}

/// Whether one tick is before another one.
fn is_before(ticks: u64, other: u64) -> bool {
    (ticks.wrapping_sub(other) as i64) < 0
}

/// The samples, for every thread.
#[repr(C)]
pub(super) struct History(Latch<6, 0, ()>);

impl History {
    pub(super) const fn new() -> Self {
        Self(Latch::new(0, ()))
    }

    /// Takes the sample of a published state as the younger mark, or clears the history if the
    /// counter is not measured. If two callers do so at once, one of them changes nothing.
    #[cold]
    #[inline(never)]
    pub(super) fn follow(&self, state: &ClockState) {
        let (version, words) = self.0.snapshot();
        let Sample { ticks, nanos } = state.sampled.centred(state.cost);
        let [t0, n0, .., t2, n2] = words;
        let next = match state.phase {
            Phase::Running if n2 == 0 => [ticks, nanos, ticks, nanos, ticks, nanos],
            Phase::Running => [t0, n0, t2, n2, ticks, nanos],
            _ => [0; 6],
        };
        if next != words {
            self.0.update(version, &Update { words: next, hot: [], late: 0, flags: 0 });
        }
    }

    /// The longest baseline, once the counter is measured.
    pub(super) fn baseline(&self, state: &ClockState) -> Option<Baseline> {
        let short = Baseline { ticks: state.frequency()?, nanos: 1_000_000_000 };
        let longest = self.load(state).and_then(|Samples([first, .., last])| between(first, last));
        longest.or(Some(short))
    }

    /// The time of a tick, once the counter is measured.
    pub(super) fn nanos_of(&self, ticks: u64, state: &ClockState) -> Option<u64> {
        Some(self.load(state)?.at(ticks, self.baseline(state)?))
    }

    fn load(&self, state: &ClockState) -> Option<Samples> {
        Samples::from_words(self.0.snapshot().1, state)
    }
}
