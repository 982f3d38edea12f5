//! [`Source`]: a counter, and the kernel's clocks.

#[cfg(all(
    any(target_os = "linux", target_os = "android"),
    not(vdso_time_other_os)
))]
use vdso_time::ReadCost;

use super::status::Unavailable;

/// The inputs of the clock: a counter, and the kernel's clocks. Times are in nanoseconds.
///
/// `monotonic`, `realtime` and `raw` return `None` if a sandbox denies the kernel's clock.
pub(crate) trait Source {
    /// Reads the counter. The CPU may do so before earlier instructions have completed, but two
    /// reads of a thread stay in order.
    fn ticks(&self) -> u64;
    /// Reads the counter in order: if one of these reads happens before another, in the same thread
    /// or in another, its tick is not larger. On aarch64 and arm, this holds only after a branch on
    /// a word that was loaded before, as in [`fresh`](super::state::fresh).
    fn ticks_ordered(&self) -> u64;
    /// Returns the low half of a tick. If the CPU delivers the two halves separately, an
    /// implementation can return the low half without waiting for the high half.
    fn low_half(tick: u64) -> u32 {
        tick as u32
    }
    /// Reads `CLOCK_MONOTONIC`.
    fn monotonic(&self) -> Option<u64>;
    /// Reads `CLOCK_REALTIME`.
    fn realtime(&self) -> Option<i64>;
    /// Reads `CLOCK_MONOTONIC_RAW`, which is never slewed, if the kernel has it.
    fn raw(&self) -> Option<i64>;
    /// Asks the kernel whether the counter can be used, and who maintains its clock source.
    ///
    /// `trusts_hypervisor` says whether the hypervisor's statement is sufficient.
    fn detect(&self, trusts_hypervisor: bool) -> Result<Keeper, Unavailable>;
    /// Returns the counter's rate in Hz, as the hardware states it.
    fn stated_frequency(&self) -> Option<u64> {
        None
    }
}

/// Who maintains the clock source that is derived from the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeper {
    /// The kernel, as for `tsc`.
    Kernel,
    /// The hypervisor, as for `kvm-clock`: it writes a scale and an offset, and says whether the
    /// counters of all CPUs agree (the *stable bit*).
    Hypervisor,
}

// Only Linux and Android need these checks. Other systems have neither Linux's clock sources nor a
// vDSO whose cost could be measured.
#[cfg(all(
    any(target_os = "linux", target_os = "android"),
    not(vdso_time_other_os)
))]
impl Keeper {
    /// Checks that the counter's rate is constant: the CPU states it, or the program trusts the
    /// hypervisor.
    pub(crate) fn check_rate(
        self,
        is_invariant: bool,
        trusts_hypervisor: bool,
    ) -> Result<(), Unavailable> {
        if is_invariant || self == Self::Hypervisor && trusts_hypervisor {
            Ok(())
        } else {
            Err(Unavailable::NotInvariant)
        }
    }

    /// Checks that the vDSO reads the counter, given the cost of its read of `CLOCK_MONOTONIC`.
    ///
    /// A hypervisor uses the *stable bit* to say whether the counters of all CPUs agree. If the
    /// hypervisor clears this bit, the vDSO makes system calls, but the clock source keeps its
    /// name. Only the cost of a read shows the change. So if a hypervisor maintains the clock
    /// source, the counter is unavailable even if the measurement of the cost is inconclusive.
    pub(crate) fn check_cost(self, cost: ReadCost) -> Result<(), Unavailable> {
        match cost {
            ReadCost::SystemCall => Err(Unavailable::SlowVdso),
            ReadCost::Unknown if self == Self::Hypervisor => Err(Unavailable::SlowVdso),
            _ => Ok(()),
        }
    }
}
