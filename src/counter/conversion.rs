//! Times of ticks, and the counter's rate.

use super::clock::CounterClock;
use super::history::Baseline;
use super::sample::Source;

impl<S: Source> CounterClock<S> {
    /// The longest baseline, once the counter is measured.
    pub(crate) fn baseline(&self) -> Option<Baseline> {
        self.history.baseline(&self.load())
    }

    /// The counter's rate in Hz, once it is measured.
    pub(crate) fn frequency(&self) -> Option<u64> {
        self.baseline().map(|baseline| baseline.frequency())
    }

    /// The time of a tick, once the counter is measured.
    pub(crate) fn nanos_of(&self, ticks: u64) -> Option<u64> {
        self.time_at(ticks).or_else(|| {
            // So that a program that only converts has segments and new samples.
            self.slow_monotonic()?;
            self.time_at(ticks).or_else(|| self.history.nanos_of(ticks, &self.load()))
        })
    }
}
