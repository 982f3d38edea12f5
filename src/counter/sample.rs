//! [`Source`]: where the counter and the kernel's clock are read, and [`Burst`]: both read side by side.

use super::line::{self, Rate};
use super::status::Status;

/// A counter, and the clock that it is kept true to.
pub(crate) trait Source {
    /// The counter, read whenever the CPU likes, but after the read before by the same thread.
    fn ticks(&self) -> u64;
    /// The counter, read after everything before it, on whatever CPU that was.
    fn ticks_ordered(&self) -> u64;
    /// `CLOCK_MONOTONIC` in nanoseconds, by the vDSO; none if a sandbox denies it.
    fn monotonic(&self) -> Option<u64>;
    /// `CLOCK_REALTIME` in nanoseconds, by the vDSO; none if a sandbox denies it.
    fn realtime(&self) -> Option<i64>;
    /// The CPU that the thread runs on, if that can be told without a system call.
    fn cpu(&self) -> Option<u32>;
    /// Whether the kernel itself keeps the time by this counter, and this thread may read it.
    fn trust(&self) -> Result<(), Status>;
    /// The counter's rate as the hardware states it, in Hz.
    fn stated_frequency(&self) -> Option<u64>;
}

/// Both clocks, the counter read right before the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) ticks: u64,
    pub(super) nanos: u64,
}

/// Bits of a nanosecond's fraction: what tells the best sample from those that are as good to the nanosecond.
const FRACTION: u32 = 8;

impl Sample {
    /// The tick at which the clock was read, if that is in the middle of what a read of both costs.
    pub(super) fn centred(self, cost: u64) -> Self {
        Self { ticks: self.ticks.wrapping_add(cost / 2), ..self }
    }
}

/// Both clocks read in turns: counter, monotonic, counter, realtime, counter, monotonic, counter and so on.
#[derive(Clone, Copy)]
pub(super) struct Burst {
    /// The best of the samples.
    pub(super) sample: Sample,
    /// What it cost at least to read the clock and the counter, in ticks.
    pub(super) cost: u64,
    /// The least and the greatest that `CLOCK_REALTIME` less `CLOCK_MONOTONIC` can be, if nobody set the clock meanwhile.
    pub(super) offset: [i64; 2],
}

impl Burst {
    /// The offset in the middle of what is possible.
    pub(super) fn middle(&self) -> i64 {
        let [low, high] = self.offset;
        low.wrapping_add(high.wrapping_sub(low) / 2)
    }

    /// The offset, given the one before, which stays unless it is not possible any more; it is mended bit by bit where little
    /// else is possible.
    pub(super) fn offset_after(&self, before: i64, rate: Rate) -> i64 {
        let [low, high] = self.offset;
        let is_narrow = high.abs_diff(low) <= line::nanos(self.cost, rate).saturating_mul(4);
        match (low <= before && before <= high, is_narrow) {
            (true, true) => before.wrapping_add(self.middle().wrapping_sub(before) / 8),
            (true, false) => before,
            (false, _) => self.middle(),
        }
    }

    /// Reads `CLOCK_REALTIME` `turns` times, and `CLOCK_MONOTONIC` once more.
    ///
    /// A sample can be late, if something came between counter and clock, but never early: so the best is the one whose
    /// clock is least ahead of the counter (the lower envelope). `rate` says what ticks are worth; the first burst does not
    /// know, and takes the cheapest sample.
    pub(super) fn take<S: Source>(source: &S, turns: u32, rate: Option<Rate>) -> Option<Self> {
        let mut before = source.ticks_ordered();
        let first = source.monotonic()?;
        let mut after = source.ticks_ordered();
        let origin = Sample { ticks: before, nanos: first };
        let lateness = |sample: Sample, cost: u64| match rate {
            None => cost as i64,
            Some(rate) => {
                let ticks = sample.ticks.wrapping_sub(origin.ticks);
                let nanos = sample.nanos.wrapping_sub(origin.nanos);
                (nanos << FRACTION).wrapping_sub(ticks.wrapping_mul(rate) >> (32 - FRACTION)) as i64
            }
        };
        let mut cost = after.wrapping_sub(before);
        let mut best = origin;
        let mut least = lateness(origin, cost);
        let (mut low, mut high) = (i64::MIN, i64::MAX);
        let mut monotonic = first;
        for _ in 0..turns {
            let realtime = source.realtime()?;
            high = high.min(realtime.wrapping_sub(monotonic as i64));
            before = source.ticks_ordered();
            monotonic = source.monotonic()?;
            after = source.ticks_ordered();
            low = low.max(realtime.wrapping_sub(monotonic as i64));
            let sample = Sample { ticks: before, nanos: monotonic };
            let late = lateness(sample, after.wrapping_sub(before));
            if late < least {
                (best, least) = (sample, late);
            }
            cost = cost.min(after.wrapping_sub(before));
        }
        Some(Self { sample: best, cost, offset: [low, high] })
    }
}
