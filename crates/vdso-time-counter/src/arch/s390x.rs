//! `s390x`: the time-of-day clock (z/Architecture Principles of Operation, "Time-of-Day Clock").
//!
//! Every program may read it. The clock source is in arch/s390/kernel/time.c.

use core::arch::asm;

pub(crate) static CLOCK_SOURCES: &[&str] = &["tod"];
pub(crate) const PRCTL: u32 = 172;
pub(crate) const ADJTIMEX: u32 = 124;

pub(crate) const IS_READABLE: bool = true;
pub(crate) const IS_ORDERED_FIRST: bool = false;

#[inline]
pub(crate) fn ticks() -> u64 {
    let mut ticks = 0;
    // SAFETY: stckf writes 8 bytes to `ticks` and sets the condition code.
    unsafe { asm!("stckf 0({})", in(reg_addr) &raw mut ticks, options(nostack)) };
    ticks
}

/// `bcr 15, 0` waits for all earlier instructions.
#[inline]
pub(crate) fn ticks_ordered() -> u64 {
    let mut ticks = 0;
    // SAFETY: bcr changes nothing. stckf writes 8 bytes to `ticks` and sets the condition code.
    unsafe { asm!("bcr 15, 0", "stckf 0({})", in(reg_addr) &raw mut ticks, options(nostack)) };
    ticks
}

/// Does nothing: `ticks_ordered` waits for earlier loads.
pub(crate) fn complete_loads() {}

pub(crate) fn order() {}

pub(crate) fn detect(_auxval: fn(usize) -> usize) {}

/// Bit 51 is incremented every microsecond.
pub(crate) fn is_invariant() -> bool {
    true
}

/// The rate of the lowest bit.
#[allow(clippy::unnecessary_wraps, reason = "other architectures return None")]
pub(crate) fn stated_frequency() -> Option<u64> {
    Some(4_096_000_000)
}
