//! [`Segment`]: the time as a linear function of the counter, for 2 to 16 ms.
//!
//! A segment covers the ticks from `start` to `start + span`, and no others. So every thread gets
//! the same time for a tick, no matter when the segment was published. Consecutive segments join
//! without a step: together they are one function that never falls. The next segment removes an
//! error with its rate, and not with a step: a step back would break the order, and a step forward
//! could be wrong, because an interrupt can make a sample late.
//!
//! A segment usually takes 8 to 16 ms, because a sample's error of some nanoseconds is then below
//! 1 ppm of the segment, and making segments costs about 0.01 % of the time. Segments of twice that
//! length would not make a read cheaper, but would double the error after a change of the kernel's
//! rate. With the present length, that error is 1.6 ms for a change of 10 %. After such a change,
//! segments take 2 to 4 ms for some time.

/// Nanoseconds per tick, in units of 2^-32 ns.
pub(crate) type Rate = u64;

/// The maximum length of a segment in nanoseconds. It limits the error after a change of the
/// kernel's rate.
pub(crate) const LONGEST: u64 = 16_000_000;
/// To remove an error, a segment has a rate other than the base rate, which is the measured rate of
/// the counter. The two rates differ by at most 1/4 of the base rate.
const SLEW_SHIFT: u32 = 2;
/// The next segment is due in the last 1/256 of a segment. Reads are slow from then on.
const DUE_SHIFT: u32 = 8;

/// The next segment is made before the old one ends. After that, the old segment still answers for
/// ticks in its last 1/128. Such ticks come from reads between the sample and the end of the old
/// segment, and from CPUs whose counter is behind the writer's by at most 1/128 of a segment.
const LAST_SHIFT: u32 = DUE_SHIFT - 1;

/// A linear piece of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// The first tick, and its time in nanoseconds.
    pub(crate) start: u64,
    pub(crate) nanos: u64,
    pub(crate) rate: Rate,
    /// The number of ticks: 0, or a power of two, so that a shift can divide a correction by it.
    pub(crate) span: u64,
}

impl Segment {
    /// Makes a segment without ticks, which ends at this time.
    pub(crate) fn empty(nanos: u64) -> Self {
        Self {
            start: 0,
            nanos,
            rate: 0,
            span: 0,
        }
    }

    pub(crate) fn covering(self, ticks: u64) -> Option<Self> {
        let passed = ticks.wrapping_sub(self.start);
        if passed < self.span { Some(self) } else { None }
    }

    /// Returns the time of a tick that the segment covers.
    pub(crate) fn time(&self, ticks: u64) -> u64 {
        let passed = nanos(ticks.wrapping_sub(self.start), self.rate);
        self.nanos.wrapping_add(passed)
    }

    /// Returns the time that a later tick would have if the segment never ended.
    pub(crate) fn extrapolated(&self, ticks: u64) -> u64 {
        let passed = long_nanos(ticks.wrapping_sub(self.start), self.rate);
        self.nanos.saturating_add(passed)
    }

    pub(crate) fn end_nanos(&self) -> u64 {
        self.time(self.end())
    }

    /// Returns the earliest time that a read at `ticks` may return after other reads have used this
    /// segment. The caller must have checked that the segment does not cover `ticks`.
    ///
    /// If `ticks` is after the segment, the result is the time of the segment's end. If `ticks` is
    /// before the segment, the result is the segment's first time. A tick can be before the segment
    /// because this CPU's counter is behind the writer's, or because the counter was set back.
    pub(crate) fn held(&self, ticks: u64) -> u64 {
        if self.begins_after(ticks) {
            self.nanos
        } else {
            self.end_nanos()
        }
    }

    pub(crate) fn end(&self) -> u64 {
        self.start.wrapping_add(self.span)
    }

    /// Returns whether the tick is before the segment's first one, by at most a span.
    pub(crate) fn begins_after(&self, ticks: u64) -> bool {
        let left = self.start.wrapping_sub(ticks);
        left.wrapping_sub(1) < self.span
    }

    /// Returns whether the segment begins after the tick, within 1/128 of its span. A tick that is
    /// further before the segment comes from a counter that was set back.
    pub(crate) fn begins_soon(&self, ticks: u64) -> bool {
        let left = self.start.wrapping_sub(ticks);
        left.wrapping_sub(1) < self.span >> LAST_SHIFT
    }

    /// Returns whether the tick is in the last 1/128 of the segment.
    pub(crate) fn ends_soon(&self, ticks: u64) -> bool {
        let left = self.end().wrapping_sub(ticks);
        left.wrapping_sub(1) < self.span >> LAST_SHIFT
    }

    /// Returns for how many ticks after its start the segment is fresh. Then the next one is due.
    pub(crate) fn fresh_span(&self) -> u64 {
        self.span - (self.span >> DUE_SHIFT)
    }

    /// Returns whether the segment covers the tick and the next segment is not yet due.
    pub(crate) fn is_fresh(&self, ticks: u64) -> bool {
        ticks.wrapping_sub(self.start) < self.fresh_span()
    }

    /// Returns whether the segment covers the tick and the next segment is due.
    pub(crate) fn is_ending(&self, ticks: u64) -> bool {
        let passed = ticks.wrapping_sub(self.start);
        (self.fresh_span()..self.span).contains(&passed)
    }
}

/// Returns the change of `rate` that removes an error within `span` ticks. The change is limited to
/// 1/4 of the rate, so it might remove only a part of the error. `error` is in nanoseconds.
pub(crate) fn correction(error: i64, span: u64, rate: Rate) -> i64 {
    let limit = (rate >> SLEW_SHIFT) as i64;
    ((error << 32) >> span.trailing_zeros()).clamp(-limit, limit)
}

/// Returns the time that the ticks of a segment take. The result wraps after 4.29 s, so ticks that
/// can take longer need [`long_nanos`].
#[inline]
pub(crate) const fn nanos(ticks: u64, rate: Rate) -> u64 {
    ticks.wrapping_mul(rate) >> 32
}

/// Returns the time that any number of ticks takes, at most `i64::MAX`.
pub(crate) fn long_nanos(ticks: u64, rate: Rate) -> u64 {
    let nanos = (u128::from(ticks) * u128::from(rate)) >> 32;
    nanos.min(i64::MAX as u128) as u64
}

/// Returns the rate at which `ticks` take `nanos`, or `None` if it is far too high or if `ticks`
/// is 0.
pub(crate) fn rate(ticks: u64, nanos: u64) -> Option<Rate> {
    let rate = (u128::from(nanos) << 32).checked_div(u128::from(ticks))?;
    if rate < 2048 << 32 {
        Some(rate as Rate)
    } else {
        None
    }
}

/// Returns the rate at which `ticks` take `change` nanoseconds.
pub(crate) fn rate_of(change: i64, ticks: u64) -> i64 {
    ((i128::from(change) << 32) / i128::from(ticks.max(1))) as i64
}

/// Returns whether a counter can have the rate: 1 MHz to 64 GHz, with a margin.
pub(crate) fn is_possible(rate: Rate) -> bool {
    ((1 << 32) / 66..1024 << 32).contains(&rate)
}

/// Returns the longest span of a segment: the largest number of ticks that is a power of two and
/// takes at most [`LONGEST`].
pub(crate) fn longest_span(rate: Rate) -> u64 {
    let Some(ticks) = (LONGEST << 32).checked_div(rate) else {
        return 1;
    };
    1 << ticks.checked_ilog2().unwrap_or(0)
}

pub(crate) fn frequency(rate: Rate) -> u64 {
    scale(1_000_000_000, 1 << 32, rate)
}

/// Returns `number` x `numerator` / `denominator`, rounded.
pub(crate) fn scale(number: u64, numerator: u64, denominator: u64) -> u64 {
    if denominator == 0 {
        return 0;
    }
    let product = u128::from(number) * u128::from(numerator);
    let half = u128::from(denominator / 2);
    let result = (product + half) / u128::from(denominator);
    result.try_into().unwrap_or(u64::MAX)
}
