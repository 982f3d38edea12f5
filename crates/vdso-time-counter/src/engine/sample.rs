//! [`Sample`] and [`Burst`]: reads of a counter and of the kernel's clocks, side by side.

use super::segment::{self, Rate};
use super::source::Source;

/// Whether a read of the counter takes at least half as long as a system call, because the kernel
/// traps it, as arm64's does for an erratum (arm_arch_timer.c).
pub(crate) fn is_trapped<S: Source>(source: &S) -> bool {
    /// Reads that are timed together, so that a coarse counter advances.
    const READS: u64 = 8;
    /// Interrupts only add, so the least of all tries counts.
    const TRIES: u32 = 16;
    // One function for both, which an emulator translates in the first try.
    #[inline(never)]
    fn time<S: Source>(source: &S, read: &dyn Fn() -> Option<()>) -> Option<u64> {
        let before = source.ticks_ordered();
        (0..READS).try_for_each(|_| read())?;
        Some(source.ticks_ordered().wrapping_sub(before))
    }
    let least = |read: &dyn Fn() -> Option<()>| {
        (0..TRIES).try_fold(u64::MAX, |least, _| Some(least.min(time(source, read)?)))
    };
    let Some(kernel) = least(&|| source.call_kernel()) else { return false };
    let counter = least(&|| {
        source.ticks_ordered();
        Some(())
    });
    counter.is_some_and(|counter| counter >= READS && counter >= kernel / 2)
}

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
        Some((Self { ticks, nanos }, source.ticks_ordered().wrapping_sub(ticks)))
    }

    /// The sample with the tick in the middle of a read of both clocks, which takes `cost` ticks.
    pub(crate) fn centred(self, cost: u64) -> Self {
        Self { ticks: self.ticks.wrapping_add(cost / 2), ..self }
    }
}

/// The result of alternate reads: counter, monotonic, counter, realtime, counter, monotonic, ...
#[derive(Clone, Copy)]
pub(crate) struct Burst {
    /// The best sample.
    pub(crate) sample: Sample,
    /// The least number of ticks that a read of the monotonic clock and the counter took.
    pub(crate) cost: u64,
    /// The least and the greatest possible `CLOCK_REALTIME` minus `CLOCK_MONOTONIC`.
    pub(crate) offset: [i64; 2],
}

impl Burst {
    /// The new offset, given the old one.
    ///
    /// - An old offset within the interval stays, so that the wall clock does not go back.
    /// - If it is outside by at most the interval's width, it was measured wrongly. The nearest
    ///   limit replaces it. The same if an interrupt widened the interval.
    /// - Otherwise somebody set the clock, and the middle of the interval replaces it.
    pub(crate) fn offset_after(&self, old: i64, rate: Rate) -> i64 {
        let [low, high] = self.offset;
        if low > high {
            // Somebody set the clock between the reads. The limit farther from `old` is later.
            return if low.abs_diff(old) > high.abs_diff(old) { low } else { high };
        }
        let nearest = old.clamp(low, high);
        let width = high.abs_diff(low);
        let is_wide = width > segment::nanos(self.cost, rate).saturating_mul(4);
        if is_wide || nearest.abs_diff(old) <= width { nearest } else { middle(self.offset) }
    }

    /// Reads `CLOCK_REALTIME` `turns` times and `CLOCK_MONOTONIC` once more often. Stops early if
    /// the cost is at most `enough`.
    ///
    /// An interrupt between counter and clock makes a sample late. Nothing makes it early. So the
    /// best sample is the one whose clock is least ahead of the counter at this rate. Without a
    /// rate, it is the sample that took the fewest ticks.
    pub(crate) fn take<S: Source>(
        source: &S,
        turns: u32,
        rate: Option<Rate>,
        enough: Option<u64>,
    ) -> Option<Self> {
        /// Bits below a nanosecond, to compare samples of the same nanosecond.
        const FRACTION: u32 = 8;
        let (first, mut cost) = Sample::take(source)?;
        let lateness = |sample: Sample, cost: u64| match rate {
            None => cost as i64,
            Some(rate) => {
                let ticks = sample.ticks.wrapping_sub(first.ticks);
                let nanos = sample.nanos.wrapping_sub(first.nanos);
                (nanos << FRACTION).wrapping_sub(ticks.wrapping_mul(rate) >> (32 - FRACTION)) as i64
            }
        };
        let mut previous = first;
        let mut best = first;
        let mut least = lateness(first, cost);
        let (mut low, mut high) = (i64::MIN, i64::MAX);
        for _ in 0..turns {
            let realtime = source.realtime()?;
            high = high.min(realtime.wrapping_sub(previous.nanos as i64));
            let (sample, taken) = Sample::take(source)?;
            low = low.max(realtime.wrapping_sub(sample.nanos as i64));
            let late = lateness(sample, taken);
            if late < least {
                (best, least) = (sample, late);
            }
            cost = cost.min(taken);
            previous = sample;
            if enough.is_some_and(|enough| cost <= enough) {
                break;
            }
        }
        Some(Self { sample: best, cost, offset: [low, high] })
    }
}

/// The least and the greatest possible value of a clock of the kernel minus the monotonic one, by
/// the narrowest of some tries.
pub(crate) fn offset_to<S: Source>(source: &S, read: impl Fn(&S) -> Option<i64>) -> Option<[i64; 2]> {
    let mut possible = [[0; 2]; 4];
    let mut before = source.monotonic()?;
    for offset in &mut possible {
        let time = read(source)?;
        let after = source.monotonic()?;
        *offset = [after, before].map(|monotonic| time.wrapping_sub(monotonic as i64));
        before = after;
    }
    possible.into_iter().min_by_key(|[low, high]| high.abs_diff(*low))
}

/// The middle of the possible offsets.
pub(crate) fn middle([low, high]: [i64; 2]) -> i64 {
    low.wrapping_add(high.wrapping_sub(low) / 2)
}
