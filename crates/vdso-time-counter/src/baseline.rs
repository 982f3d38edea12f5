//! [`Baseline`]: a mean rate of the counter.

/// The number of ticks that took some nanoseconds of `CLOCK_MONOTONIC`, from
/// [`baseline`](super::baseline).
///
/// Both numbers have an error of a read of both clocks, tens of nanoseconds. So the rate has an
/// error of some parts per billion after a minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Baseline {
    /// The number of [`Ticks`](super::Ticks).
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
