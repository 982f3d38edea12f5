//! `riscv64`: the `time` CSR (The RISC-V Instruction Set Manual, volume I, "Zicntr"), which has a
//! constant rate and one time for all harts.
//!
//! Linux lets every program read it (drivers/perf/riscv_pmu_sbi.c, `CSR_SCOUNTEREN`). A fence
//! orders the read of a CSR as device input (the same manual, "Zicsr"). The clock source is in
//! drivers/clocksource/timer-riscv.c.

use core::arch::asm;

pub(crate) static CLOCK_SOURCES: &[&str] = &["riscv_clocksource"];
pub(crate) const PRCTL: u32 = 167;
pub(crate) const ADJTIMEX: u32 = 171;

pub(crate) const IS_READABLE: bool = true;
pub(crate) const IS_ORDERED_FIRST: bool = false;

#[inline]
pub(crate) fn ticks() -> u64 {
    let ticks;
    // SAFETY: the instruction only writes its output.
    unsafe { asm!("rdtime {}", out(reg) ticks, options(nomem, nostack, preserves_flags)) };
    ticks
}

#[inline]
pub(crate) fn ticks_ordered() -> u64 {
    let ticks;
    // SAFETY: the instructions only write the output. Without `nomem`, the compiler does not move
    // memory accesses across the read.
    unsafe { asm!("fence iorw, i", "rdtime {}", out(reg) ticks, options(nostack, preserves_flags)) };
    ticks
}

/// Does nothing: `ticks_ordered` waits for earlier loads.
pub(crate) fn complete_loads() {}

pub(crate) fn order() {}

pub(crate) fn detect(_auxval: fn(usize) -> usize) {}

pub(crate) fn is_invariant() -> bool {
    true
}

pub(crate) fn stated_frequency() -> Option<u64> {
    None
}
