//! `s390x`: the time-of-day clock (z/Architecture Principles of Operation, "Time-of-Day Clock").
//!
//! Every program may read the time-of-day clock. The kernel's clock source `tod`, which reads the
//! same clock, is in arch/s390/kernel/time.c.

use core::arch::asm;

use crate::machine::arch::counter::Counter;

pub(crate) enum CpuCounter {}

impl Counter for CpuCounter {
    const CLOCK_SOURCES: &'static [&'static str] = &["tod"];
    const IS_READABLE: bool = true;

    #[inline]
    fn ticks() -> u64 {
        let mut ticks = 0;
        // SAFETY: stckf writes 8 bytes to `ticks` and sets the condition code.
        unsafe { asm!("stckf 0({})", in(reg_addr) &raw mut ticks, options(nostack)) };
        ticks
    }

    /// Waits for all earlier instructions with `bcr 15, 0`.
    #[inline]
    fn ticks_ordered() -> u64 {
        let mut ticks = 0;
        // SAFETY: bcr changes nothing. stckf writes 8 bytes to `ticks` and sets the condition code.
        unsafe { asm!("bcr 15, 0", "stckf 0({})", in(reg_addr) &raw mut ticks, options(nostack)) };
        ticks
    }

    /// Returns the rate of the lowest bit.
    fn stated_frequency() -> Option<u64> {
        Some(4_096_000_000)
    }
}
