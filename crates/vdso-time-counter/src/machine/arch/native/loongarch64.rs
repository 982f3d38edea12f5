//! `loongarch64`: the stable counter (LoongArch Reference Manual, volume 1, 2.2.10.4).
//!
//! An ordered read executes two barriers before it reads the counter: `dbar 0` waits for earlier
//! memory accesses, and `ibar 0` waits for the `dbar 0`.

use core::arch::asm;

use crate::machine::arch::counter::Counter;

pub(crate) enum CpuCounter {}

impl Counter for CpuCounter {
    const CLOCK_SOURCES: &'static [&'static str] = &["Constant"];
    const IS_READABLE: bool = true;

    #[inline]
    fn ticks() -> u64 {
        let ticks;
        // SAFETY: the instruction only writes its output.
        unsafe {
            asm!("rdtime.d {}, $zero", out(reg) ticks, options(nomem, nostack, preserves_flags));
        }
        ticks
    }

    #[inline]
    fn ticks_ordered() -> u64 {
        let ticks;
        // SAFETY: the instructions only write the output. `nomem` is left out, so that the compiler
        // does not move memory accesses across the read.
        unsafe {
            asm!("dbar 0", "ibar 0", "rdtime.d {}, $zero", out(reg) ticks, options(nostack, preserves_flags));
        };
        ticks
    }
}
