//! [`Sample`] and [`Burst`]: reads of a counter and of the kernel's clocks, side by side.

use super::segment::Rate;
use super::source::Source;

/// A tick, and the kernel's time right after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) ticks: u64,
    pub(crate) nanos: u64,
}

impl Sample {
    /// Reads both clocks, and returns the ticks that it took. It is not inlined, so that its code
    /// is fetched once.
    #[inline(never)]
    fn take<S: Source>(source: &S) -> Option<(Self, u64)> {
        let ticks = source.ticks_ordered();
        let nanos = source.monotonic()?;
        Some((
            Self { ticks, nanos },
            source.ticks_ordered().wrapping_sub(ticks),
        ))
    }

    /// Returns the sample with the tick in the middle of a read of both clocks, which takes `cost`
    /// ticks.
    pub(crate) fn centred(self, cost: u64) -> Self {
        Self {
            ticks: self.ticks.wrapping_add(cost / 2),
            ..self
        }
    }
}

/// The best of several consecutive samples.
#[derive(Clone, Copy)]
pub(crate) struct Burst {
    pub(crate) sample: Sample,
    /// The least number of ticks that a sample took.
    pub(crate) cost: u64,
}

impl Burst {
    /// Takes at most `most` samples, and stops after one that took at most `enough` ticks.
    ///
    /// An interrupt between counter and clock makes a sample late. Nothing makes it early. So the
    /// best sample is the one whose clock is least ahead of the counter at this rate. Without a
    /// rate, it is the sample that took the fewest ticks.
    pub(crate) fn take<S: Source>(
        source: &S,
        most: u32,
        rate: Option<Rate>,
        enough: u64,
    ) -> Option<Self> {
        /// Bits below a nanosecond, to compare samples of the same nanosecond.
        const FRACTION: u32 = 8;
        let (first, mut cost) = Sample::take(source)?;
        let lateness = |sample: Sample, cost: u64| match rate {
            None => cost as i64,
            Some(rate) => {
                let ticks = sample.ticks.wrapping_sub(first.ticks);
                let nanos = sample.nanos.wrapping_sub(first.nanos);
                let expected = (u128::from(ticks) * u128::from(rate)) >> (32 - FRACTION);
                (nanos << FRACTION).wrapping_sub(expected as u64) as i64
            }
        };
        let mut best = first;
        let mut least = lateness(first, cost);
        for _ in 1..most {
            if cost <= enough {
                break;
            }
            let (sample, taken) = Sample::take(source)?;
            let late = lateness(sample, taken);
            if late < least {
                best = sample;
                least = late;
            }
            cost = cost.min(taken);
        }
        Some(Self { sample: best, cost })
    }
}

/// The possible values of a clock of the kernel minus the monotonic one, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interval {
    pub(crate) low: i64,
    pub(crate) high: i64,
    /// The time of the shortest turn.
    pub(crate) shortest: u64,
}

impl Interval {
    /// Measures it in some turns, by alternate reads.
    ///
    /// Each read of the clock is about halfway between two reads of the monotonic clock, so the
    /// truth is about in the middle. An earlier version kept the end of the interval that was
    /// nearer to the old offset, and was 41 ns late: a read takes time, so the two ends never meet.
    pub(crate) fn measure<S: Source>(
        source: &S,
        turns: u32,
        read: impl Fn(&S) -> Option<i64>,
    ) -> Option<Self> {
        let mut before = source.monotonic()?;
        let mut possible: Option<Self> = None;
        for _ in 0..turns {
            let time = read(source)?;
            let after = source.monotonic()?;
            let turn = Self {
                low: time.wrapping_sub(after as i64),
                high: time.wrapping_sub(before as i64),
                shortest: after.wrapping_sub(before),
            };
            possible = Some(match possible {
                Some(possible) => possible.narrowed(turn),
                None => turn,
            });
            before = after;
        }
        possible
    }

    /// Returns what is possible after one more turn.
    fn narrowed(self, turn: Self) -> Self {
        let both = Self {
            low: self.low.max(turn.low),
            high: self.high.min(turn.high),
            shortest: self.shortest.min(turn.shortest),
        };
        // Otherwise the clock was set between two turns.
        if both.low <= both.high { both } else { turn }
    }

    pub(crate) fn width(&self) -> u64 {
        self.high.abs_diff(self.low)
    }

    pub(crate) fn middle(&self) -> i64 {
        self.low.wrapping_add(self.high.wrapping_sub(self.low) / 2)
    }
}
