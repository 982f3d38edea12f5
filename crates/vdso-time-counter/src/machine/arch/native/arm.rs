//! `arm`: the virtual count of the generic timer (Arm Architecture Reference Manual, G6.2). The
//! kernel lets programs read the count only if the kernel's vDSO reads the count as well.
//!
//! The instructions are written as numbers, because the assembler accepts some of their mnemonics
//! only after a directive that marks the whole object as ARMv7. A linker would then allow ARMv7
//! instructions in programs for older CPUs. Coprocessor instructions have the same encoding in ARM
//! and Thumb mode. The clock source is in drivers/clocksource/arm_arch_timer.c.

use core::arch::asm;

use crate::machine::arch::counter::Counter;

pub(crate) enum CpuCounter {}

impl Counter for CpuCounter {
    const CLOCK_SOURCES: &'static [&'static str] = &["arch_sys_counter"];

    #[inline]
    fn ticks() -> u64 {
        let (low, high): (u32, u32);
        // SAFETY: mrrc only writes its outputs. The caller checked that the vDSO reads the counter.
        // `nomem` is left out, so that the compiler moves no memory access across the read.
        unsafe {
            asm!(
                ".inst 0xec510f1e", // mrrc p15, 1, r0, r1, c14
                out("r0") low, out("r1") high,
                options(nostack, preserves_flags),
            );
        }
        (u64::from(high) << 32) | u64::from(low)
    }

    #[inline]
    fn ticks_ordered() -> u64 {
        if is_thumb() {
            // SAFETY: the barrier changes no register and no memory.
            unsafe { asm!(".inst 0xf3bf8f6f", options(nostack, preserves_flags)) }; // isb sy, in Thumb mode
        } else {
            // SAFETY: the barrier changes no register and no memory.
            unsafe { asm!(".inst 0xf57ff06f", options(nostack, preserves_flags)) }; // isb sy, in ARM mode
        }
        Self::ticks()
    }

    /// Reads `CNTFRQ`, which the firmware sets.
    fn stated_frequency() -> Option<u64> {
        let hertz: u32;
        // SAFETY: mrc only writes its output. The caller checked that the vDSO reads the counter.
        unsafe {
            asm!(
                ".inst 0xee1e0f10", // mrc p15, 0, r0, c14, c0, 0
                out("r0") hertz,
                options(nomem, nostack, preserves_flags),
            );
        }
        (hertz != 0).then_some(hertz.into())
    }
}

/// Returns whether this function was compiled to Thumb code, in which a `mov` has 2 bytes instead
/// of 4. Stable Rust has no cfg that distinguishes Thumb code from ARM code.
#[inline]
fn is_thumb() -> bool {
    let length: u32;
    // SAFETY: the instructions only write their outputs and the flags. `pure` requires that the
    // result is always the same. The two addresses depend on where the code is, but the length does
    // not.
    unsafe {
        asm!(
            "mov {first}, pc",
            "mov {length}, pc",
            "subs {length}, {length}, {first}",
            first = out(reg) _, length = out(reg) length,
            options(pure, nomem, nostack),
        );
    }
    length == 2
}
