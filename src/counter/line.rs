//! [`Line`]: the time as a function of the counter, for some milliseconds.
//!
//! A line has its ticks from the start: which is its first and which is the first that it has not. So the time of a tick
//! does not depend on when a line was published, nor on which thread looks: the lines, one behind the other, are one
//! function that never falls, and a clock that reads it never goes back. A line takes a power of two of ticks, so that what
//! is spread over it is spread by a shift.

/// Nanoseconds a tick, in units of 2^-32 ns.
pub(super) type Rate = u64;

/// The longest line is not longer than this: what the clock can be wrong by is what the kernel's rate can change in it.
pub(super) const LONGEST: u64 = 16_000_000;
/// A correction is at most 1/1024 of the time, 977 ppm: twice what NTP may change (adjtimex(2): 500 ppm).
const SLEW_SHIFT: u32 = 10;

/// A piece of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Its first tick.
    pub(super) start: u64,
    /// The time of that, in nanoseconds.
    pub(super) nanos: u64,
    /// How the time goes on.
    pub(super) rate: Rate,
    /// How many ticks it has; a power of two, or 0.
    pub(super) span: u64,
}

impl Line {
    /// A line that has no tick, and this for its last time.
    pub(super) const fn none(nanos: u64) -> Self {
        Self { start: 0, nanos, rate: 0, span: 0 }
    }

    /// The time of a tick, if it is one of this line's.
    pub(super) fn at(&self, ticks: u64) -> Option<u64> {
        let past = ticks.wrapping_sub(self.start);
        (past < self.span).then(|| self.nanos.wrapping_add(nanos(past, self.rate)))
    }

    /// The first tick that it has not.
    pub(super) fn end(&self) -> u64 {
        self.start.wrapping_add(self.span)
    }

    /// The time of that, which none of its own exceeds.
    pub(super) const fn last(&self) -> u64 {
        self.nanos.wrapping_add(nanos(self.span, self.rate))
    }

    /// The line after this one: it begins where this one ends.
    pub(super) fn next(&self, rate: Rate) -> Self {
        Self { start: self.end(), nanos: self.last(), rate, span: self.span }
    }

    /// Whether a tick is one of those right before its first, as many as it has itself.
    pub(super) fn is_right_behind(&self, ticks: u64) -> bool {
        self.start.wrapping_sub(ticks).wrapping_sub(1) < self.span
    }

    /// Before which of its ticks, counted from its first, the next line need not be made.
    pub(super) fn fresh(&self) -> u64 {
        self.span - self.span / 64
    }

    /// Whether the tick is one of those.
    pub(super) fn is_fresh(&self, ticks: u64) -> bool {
        ticks.wrapping_sub(self.start) < self.fresh()
    }

    /// What `error` nanoseconds, spread over the line, come to a tick.
    pub(super) fn spread(&self, error: i64) -> i64 {
        (error << 32) >> self.span.trailing_zeros()
    }

    /// The largest error that the next line may take away.
    pub(super) fn slew_limit(&self) -> u64 {
        nanos(self.span, self.rate) >> SLEW_SHIFT
    }

    /// How far a change of the kernel's rate by NTP's 500 ppm takes its clock from this line, at most.
    pub(super) fn drift(&self) -> u64 {
        nanos(self.span, self.rate) / 2000
    }
}

/// The time that ticks take, if that is not more than that of the longest line.
#[inline]
pub(super) const fn nanos(ticks: u64, rate: Rate) -> u64 {
    ticks.wrapping_mul(rate) >> 32
}

/// The time that any number of ticks takes.
pub(super) fn long_nanos(ticks: u64, rate: Rate) -> u128 {
    (u128::from(ticks) * u128::from(rate)) >> 32
}

/// The rate at which these ticks take this time, if it is one that a counter can have: from 1 MHz, or what is
/// measured of that, to 64 GHz.
pub(super) fn rate(ticks: u64, nanos: u64) -> Option<Rate> {
    let rate = (u128::from(nanos) << 32).checked_div(u128::from(ticks))?;
    ((1 << 26)..(1024 << 32)).contains(&rate).then_some(rate as Rate)
}

/// How many ticks a line has: the largest power of two that takes not more than [`LONGEST`].
pub(super) fn span(rate: Rate) -> u64 {
    1 << (u128::from(LONGEST) << 32).checked_div(u128::from(rate)).and_then(u128::checked_ilog2).unwrap_or(0)
}

/// Ticks a second.
pub(super) fn frequency(rate: Rate) -> u64 {
    ((1_000_000_000_u128 << 32) + u128::from(rate) / 2).checked_div(rate.into()).unwrap_or(0) as u64
}
