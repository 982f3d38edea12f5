//! [`Source`]: a counter, and the kernel's clocks.

use vdso_time::Errno;

use super::status::Refusal;

/// A counter, and the kernel's clocks that it follows. Times are in nanoseconds; `None` is the
/// answer of a sandbox that denies a clock.
pub(crate) trait Source {
    /// Reads the counter. The CPU may do so early, but two reads of a thread stay in order.
    fn ticks(&self) -> u64;
    /// Reads the counter after all earlier instructions have completed.
    fn ticks_ordered(&self) -> u64;
    /// Makes the next [`ticks_after_order`](Self::ticks_after_order) an ordered read, which does
    /// not wait for the loads between the two.
    #[inline]
    fn order(&self) {}
    /// Reads the counter after everything before `order`, and after the load on which the last
    /// branch depends.
    #[inline]
    fn ticks_after_order(&self) -> u64 {
        self.ticks_ordered()
    }
    /// Reads `CLOCK_MONOTONIC`.
    fn monotonic(&self) -> Option<u64>;
    /// Reads `CLOCK_REALTIME`.
    fn realtime(&self) -> Option<i64>;
    /// Reads `CLOCK_MONOTONIC_RAW`, which nobody slews, if the kernel has it.
    fn raw(&self) -> Option<i64>;
    /// Makes a system call that reads `CLOCK_MONOTONIC`, if there is one that may be made.
    fn call_kernel(&self) -> Option<()> {
        None
    }
    /// Asks the kernel whether the counter can be used.
    fn detect(&self) -> Result<(), Refusal>;
    /// Returns a number that changes when the hypervisor moved or restored the machine, and is 0
    /// before.
    fn marker(&self) -> u64 {
        0
    }
    /// Returns the counter's rate in Hz as the hardware states it.
    fn stated_frequency(&self) -> Option<u64> {
        None
    }
    /// Asks the kernel for the error of its wall clock.
    fn timex(&self) -> Result<Timex, Errno> {
        Err(Errno::ENOSYS)
    }
}

/// What adjtimex(2) says of the wall clock and its error. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "flags of the kernel")]
pub(crate) struct Timex {
    /// `CLOCK_REALTIME`.
    pub(crate) realtime: i64,
    /// `maxerror`. 0 if it is negative.
    pub(crate) max_error: u64,
    /// The size of `offset`, which the kernel has yet to add to its clock.
    pub(crate) pending: u64,
    /// `esterror` and `freq`, which change only if a program writes.
    pub(crate) written: [u64; 2],
    /// By how much the kernel slews its clock on purpose (`tick`), in parts per billion.
    pub(crate) slew: u64,
    pub(crate) is_synchronized: bool,
    /// Whether the kernel inserts or deletes a second at the end of the day: `STA_INS`, `STA_DEL`.
    pub(crate) has_leap: bool,
    /// Whether the kernel corrects its clock by a pulse per second, by up to all of `offset` in a
    /// second: `STA_PPSTIME`.
    pub(crate) has_pps: bool,
}
