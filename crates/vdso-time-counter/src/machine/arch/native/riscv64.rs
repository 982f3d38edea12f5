//! `riscv64`: the `time` CSR (The RISC-V Instruction Set Manual, volume I, "Zicntr"), which has a
//! constant rate and shows the same time on all harts.
//!
//! Linux lets every program read the CSR (drivers/perf/riscv_pmu_sbi.c, `CSR_SCOUNTEREN`). For a
//! fence, a read of a CSR counts as device input (the same manual, "Zicsr"), so `fence iorw, i`
//! orders the read after all earlier memory accesses. The clock source is in
//! drivers/clocksource/timer-riscv.c.

use core::arch::asm;

use crate::machine::arch::counter::Counter;

pub(crate) enum CpuCounter {}

impl Counter for CpuCounter {
    const CLOCK_SOURCES: &'static [&'static str] = &["riscv_clocksource"];
    const IS_READABLE: bool = true;

    #[inline]
    fn ticks() -> u64 {
        let ticks;
        // SAFETY: the instruction only writes its output.
        unsafe { asm!("rdtime {}", out(reg) ticks, options(nomem, nostack, preserves_flags)) };
        ticks
    }

    #[inline]
    fn ticks_ordered() -> u64 {
        let ticks;
        // SAFETY: the instructions only write the output. `nomem` is left out, so that the compiler
        // does not move memory accesses across the read.
        unsafe {
            asm!("fence iorw, i", "rdtime {}", out(reg) ticks, options(nostack, preserves_flags));
        }
        ticks
    }
}
