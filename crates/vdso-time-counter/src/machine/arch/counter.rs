//! [`Counter`]: the counter of each architecture.

/// The counter of an architecture. The defaults describe a counter that this crate cannot read.
pub(crate) trait Counter {
    /// The names of the kernel's clock sources that read this counter.
    const CLOCK_SOURCES: &'static [&'static str] = &[];
    /// The clock sources that are this counter with a scale and an offset from the hypervisor.
    const PARAVIRTUAL: &'static [&'static str] = &[];
    /// Whether every program may read the counter.
    const IS_READABLE: bool = false;
    /// The number of the system call prctl(2), if its `PR_GET_TSC` says whether this thread may
    /// read the counter.
    const PRCTL: Option<u32> = None;

    /// Reads the counter. The CPU may do so before earlier instructions have completed.
    fn ticks() -> u64 {
        0
    }

    /// Reads the counter after all earlier instructions have completed.
    ///
    /// Four architectures are exceptions. On aarch64 and arm, the function does not wait for all
    /// earlier loads, but only for the loads on which an earlier branch depends. On riscv64 and
    /// loongarch64, the function waits for earlier memory accesses, and not for other instructions.
    fn ticks_ordered() -> u64 {
        0
    }

    /// Calls `read` with a function that reads the counter. That function is ordered like
    /// `ticks_ordered`, but need not wait for the loads in `read`.
    #[inline]
    fn ordered<T>(read: impl FnOnce(fn() -> u64) -> T) -> T {
        read(Self::ticks_ordered)
    }

    /// Returns the low half of a tick. On `x86_64`, where the CPU delivers a tick in two registers,
    /// the result does not wait for the high half.
    #[inline]
    fn low_half(tick: u64) -> u32 {
        tick as u32
    }

    /// Waits for the earlier loads for which `ticks_ordered` does not wait. Only `Ticks` calls this
    /// function. The clocks do not need it: before they read the counter, they branch on a word
    /// that they have loaded, and `ticks_ordered` waits for a load on which a branch depends.
    #[inline]
    fn complete_loads() {}

    /// Looks for optional instructions of the CPU.
    fn detect(_auxval: fn(usize) -> usize) {}

    /// Returns whether the rate is constant in all power states.
    fn is_invariant() -> bool {
        true
    }

    /// Returns the rate in Hz, if the hardware states it.
    fn stated_frequency() -> Option<u64> {
        None
    }
}
