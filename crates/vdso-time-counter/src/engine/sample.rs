//! [`Sample`] and [`Burst`]: reads of a counter and of the kernel's clocks, one right after the
//! other.

use super::segment::Rate;
use super::source::Source;

/// A tick, and the kernel's time right after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) ticks: u64,
    pub(crate) nanos: u64,
}

impl Sample {
    /// Takes a sample: reads the counter, then the kernel's clock, then the counter again. Returns
    /// the sample and its cost, which is the number of ticks between the two reads of the counter.
    ///
    /// [`Burst::take`] calls this function in two places. The function is not inlined, so both
    /// calls run the same code, and the CPU fetches this code only once.
    #[inline(never)]
    fn take<S: Source>(source: &S) -> Option<(Self, u64)> {
        let ticks = source.ticks_ordered();
        let nanos = source.monotonic()?;
        Some((
            Self { ticks, nanos },
            source.ticks_ordered().wrapping_sub(ticks),
        ))
    }

    /// Returns the sample with its tick moved to the middle between the two reads of the counter,
    /// which were `cost` ticks apart. The kernel's clock was read at some moment between them, so
    /// the middle is the best estimate of the tick at that moment.
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
    /// If an interrupt comes between the read of the counter and the read of the kernel's clock,
    /// the kernel's time of the sample is too late. Nothing makes it too early. So the best sample
    /// is the one whose time is least ahead of the time that its tick and `rate` predict. Without a
    /// rate, the best sample is the one that took the fewest ticks.
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

/// The interval that contains the difference between two clocks of the kernel: another clock minus
/// `CLOCK_MONOTONIC`, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interval {
    pub(crate) low: i64,
    pub(crate) high: i64,
    /// The duration of the shortest turn.
    pub(crate) shortest: u64,
}

impl Interval {
    /// Measures the difference in `turns` turns. `read` reads the other clock. The reads of the two
    /// clocks alternate, and a turn is one read of each.
    ///
    /// Each read of the other clock is about halfway between two reads of the monotonic clock, so
    /// the true difference is about in the middle of the interval. In an earlier version, the wall
    /// clock used the end of the interval that was nearer to the offset from the measurement
    /// before, and was 41 ns late. More turns would not have helped: each read takes time, so the
    /// interval always has a width.
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

    /// Returns the interval after one more turn.
    fn narrowed(self, turn: Self) -> Self {
        let both = Self {
            low: self.low.max(turn.low),
            high: self.high.min(turn.high),
            shortest: self.shortest.min(turn.shortest),
        };
        // If the intervals do not overlap, the other clock was set meanwhile, so only the new turn
        // counts.
        if both.low <= both.high { both } else { turn }
    }

    pub(crate) fn width(&self) -> u64 {
        self.high.abs_diff(self.low)
    }

    pub(crate) fn middle(&self) -> i64 {
        self.low.wrapping_add(self.high.wrapping_sub(self.low) / 2)
    }
}
