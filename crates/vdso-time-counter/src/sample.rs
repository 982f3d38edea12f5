//! [`Source`]: a counter and the kernel's clocks. [`Sample`] and [`Burst`]: reads of both, side by
//! side.

use super::segment::{self, Rate};
use super::status::Status;

/// A counter, and the kernel's clocks that it follows.
pub(crate) trait Source {
    /// Reads the counter. The CPU may do so early, but two reads of a thread stay in order.
    fn ticks(&self) -> u64;
    /// Reads the counter after all earlier instructions have completed.
    fn ticks_ordered(&self) -> u64;
    /// Makes the next [`ticks_after_order`](Self::ticks_after_order) an ordered read, where that is
    /// quicker. That read does not wait for the loads between the two.
    #[inline]
    fn order(&self) {}
    /// Reads the counter after everything before [`order`](Self::order) has completed, and after
    /// the load on which the last branch depends.
    #[inline]
    fn ticks_after_order(&self) -> u64 {
        self.ticks_ordered()
    }
    /// Reads `CLOCK_MONOTONIC` in nanoseconds, unless a sandbox denies it.
    fn monotonic(&self) -> Option<u64>;
    /// Reads `CLOCK_REALTIME` in nanoseconds, unless a sandbox denies it.
    fn realtime(&self) -> Option<i64>;
    /// Reads `CLOCK_MONOTONIC_RAW` in nanoseconds, which nobody slews, if the kernel has it.
    fn raw(&self) -> Option<u64>;
    /// Makes a system call that reads `CLOCK_MONOTONIC`, if there is one that may be made.
    fn call_kernel(&self) -> Option<()> {
        None
    }
    /// Asks the kernel whether the counter can be used.
    fn detect(&self) -> Result<(), Status>;
    /// Returns a number that changes when the hypervisor moved or restored the machine: 0 before
    /// the first time, and if it does not say so.
    fn marker(&self) -> u64 {
        0
    }
    /// Returns the counter's rate in Hz as the hardware states it.
    fn stated_frequency(&self) -> Option<u64> {
        None
    }
    /// Asks the kernel for the error of its wall clock, unless a sandbox denies it.
    fn discipline(&self) -> Option<Discipline> {
        None
    }
}

/// The kernel's wall clock, and what it knows of its error. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "flags of the kernel")]
pub(crate) struct Discipline {
    /// `CLOCK_REALTIME`.
    pub(crate) realtime: i64,
    /// `maxerror`. 0 if it is negative.
    pub(crate) max_error: u64,
    /// The size of `offset`, which the kernel has yet to add to its clock.
    pub(crate) pending: u64,
    /// `esterror` and `freq`, which change only if a program writes.
    pub(crate) written: [u64; 2],
    /// By how much the kernel slews its clock on purpose, in parts per billion.
    pub(crate) slew: u64,
    pub(crate) is_synchronized: bool,
    /// Whether the kernel inserts or deletes a second at the end of the day.
    pub(crate) has_leap: bool,
    /// Whether the kernel corrects its clock by a pulse per second, by up to all of `offset` in a
    /// second.
    pub(crate) has_pps: bool,
}

/// Whether a read of the counter takes at least half as long as a system call. Then the kernel
/// traps and emulates it, as arm64's does where an erratum makes the counter unreliable
/// (arm_arch_timer.c).
pub(super) fn is_trapped<S: Source>(source: &S) -> bool {
    /// Reads that are timed together, so that a coarse counter advances.
    const READS: u64 = 8;
    /// An interrupt makes a result larger. So the least of all tries counts for system calls, and
    /// one small result is enough for the counter.
    const TRIES: u32 = 16;
    const COUNTER_TRIES: u32 = 64;
    // One function for both: an emulator translates it in the first try, which takes longer than
    // running it.
    #[inline(never)]
    fn time<S: Source>(source: &S, read: &dyn Fn() -> Option<()>) -> Option<u64> {
        let before = source.ticks_ordered();
        (0..READS).try_for_each(|_| read())?;
        Some(source.ticks_ordered().wrapping_sub(before))
    }
    let call = || time(source, &|| source.call_kernel());
    let Some(kernel) = (0..TRIES).try_fold(u64::MAX, |least, _| Some(least.min(call()?))) else {
        return false;
    };
    let count = || {
        source.ticks_ordered();
        Some(())
    };
    let is_slow = |ticks: u64| ticks >= READS && ticks >= kernel / 2;
    (0..COUNTER_TRIES).all(|_| time(source, &count).is_some_and(is_slow))
}

/// A time of both clocks. The counter is read right before the kernel's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) ticks: u64,
    pub(super) nanos: u64,
}

impl Sample {
    /// Reads both clocks, and returns the ticks that it took. It is not inlined, so that its code
    /// is fetched once: a caller that makes a segment rarely finds it in no cache.
    #[inline(never)]
    fn take<S: Source>(source: &S) -> Option<(Self, u64)> {
        let ticks = source.ticks_ordered();
        let nanos = source.monotonic()?;
        Some((Self { ticks, nanos }, source.ticks_ordered().wrapping_sub(ticks)))
    }

    /// The sample with the tick in the middle of a read of both clocks, which takes `cost` ticks.
    pub(super) fn centred(self, cost: u64) -> Self {
        Self { ticks: self.ticks.wrapping_add(cost / 2), ..self }
    }
}

/// Bits below a nanosecond, to compare samples of the same nanosecond.
const FRACTION: u32 = 8;

/// The result of alternate reads: counter, monotonic, counter, realtime, counter, monotonic, ...
#[derive(Clone, Copy)]
pub(super) struct Burst {
    /// The best sample.
    pub(super) sample: Sample,
    /// The least number of ticks that a read of the monotonic clock and the counter took.
    pub(super) cost: u64,
    /// The least and the greatest possible `CLOCK_REALTIME` minus `CLOCK_MONOTONIC`.
    pub(super) offset: [i64; 2],
}

impl Burst {
    /// The new offset, given the old one.
    ///
    /// - The kernel's offset is constant until somebody sets the wall clock. So an old offset
    ///   within the interval stays, and the wall clock does not go back.
    /// - If it is outside by at most the interval's width, it was measured wrongly. The nearest
    ///   limit replaces it. The same if the interval is wide, because an interrupt widens it to one
    ///   side.
    /// - Otherwise somebody set the clock, and the middle of the interval replaces it.
    pub(super) fn offset_after(&self, old: i64, rate: Rate) -> i64 {
        let [low, high] = self.offset;
        if low > high {
            // Somebody set the wall clock between the reads. The limit that is farther from the old
            // offset was measured after that.
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
    pub(super) fn take<S: Source>(
        source: &S,
        turns: u32,
        rate: Option<Rate>,
        enough: Option<u64>,
    ) -> Option<Self> {
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

/// The middle of the possible offsets.
pub(super) fn middle([low, high]: [i64; 2]) -> i64 {
    low.wrapping_add(high.wrapping_sub(low) / 2)
}
