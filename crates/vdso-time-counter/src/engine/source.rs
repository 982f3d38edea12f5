//! [`Source`]: a counter, and the kernel's clocks.

use super::status::Unavailable;

/// A counter, and the kernel's clocks that it follows. Times are in nanoseconds; `None` is the
/// answer of a sandbox that denies a clock.
pub(crate) trait Source {
    /// Reads the counter. The CPU may do so early, but two reads of a thread stay in order.
    fn ticks(&self) -> u64;
    /// Reads the counter after all earlier instructions have completed.
    fn ticks_ordered(&self) -> u64;
    /// Reads `CLOCK_MONOTONIC`.
    fn monotonic(&self) -> Option<u64>;
    /// Reads `CLOCK_REALTIME`.
    fn realtime(&self) -> Option<i64>;
    /// Reads `CLOCK_MONOTONIC_RAW`, which nobody slews, if the kernel has it.
    fn raw(&self) -> Option<i64>;
    /// Asks the kernel whether the counter can be used.
    fn detect(&self) -> Result<(), Unavailable>;
    /// Returns whether the last [`detect`](Self::detect) found a clock source that the hypervisor
    /// keeps.
    fn is_paravirtual(&self) -> bool {
        false
    }
    /// Returns the counter's rate in Hz as the hardware states it.
    fn stated_frequency(&self) -> Option<u64> {
        None
    }
}
