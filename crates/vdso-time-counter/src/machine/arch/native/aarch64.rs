//! `aarch64`, LP64: the virtual count of the generic timer (Arm Architecture Reference
//! Manual, D12.2).
//!
//! On CPUs with an erratum the kernel traps and corrects reads of `CNTVCT_EL0`, and since 5.16 also
//! of `CNTVCTSS_EL0` (arch/arm64/kernel/traps.c, `cntvct_read_handler`). The firmware sets
//! `CNTFRQ`. The clock source is in drivers/clocksource/arm_arch_timer.c.
//!
//! `isb` waits for the loads on which earlier branches depend, and for no others. Reads of
//! `CNTVCTSS_EL0` (FEAT_ECV) need no `isb`, because they are in program order and not speculative.
//! The vDSO relies on this as well (ARM64_HAS_ECV). If the target is an older CPU, the assembler
//! rejects the name of this register, so its number is used below.

use core::arch::asm;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::machine::arch::counter::Counter;

pub(crate) enum CpuCounter {}

impl Counter for CpuCounter {
    const CLOCK_SOURCES: &'static [&'static str] = &["arch_sys_counter"];
    const IS_READABLE: bool = true;
    /// Linux 6.12 added `PR_GET_TSC` for arm64.
    const PRCTL: Option<u32> = Some(167);

    #[inline]
    fn ticks() -> u64 {
        let ticks;
        // SAFETY: the instruction only writes its output.
        unsafe {
            asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags));
        }
        ticks
    }

    #[inline]
    fn ticks_ordered() -> u64 {
        let ticks;
        if !NEEDS_ISB.load(Relaxed) {
            // SAFETY: as below. The CPU has the register.
            unsafe {
                asm!("mrs {}, s3_3_c14_c0_6", out(reg) ticks, options(nostack, preserves_flags));
            }
            return ticks;
        }
        // SAFETY: the instructions only write the output. `nomem` is left out, so that the compiler
        // does not move memory accesses across the read.
        unsafe {
            asm!("isb", "mrs {}, cntvct_el0", out(reg) ticks, options(nostack, preserves_flags));
        }
        ticks
    }

    /// Waits for earlier loads. That alone does not order a later `mrs`, so `ticks_ordered` must
    /// follow.
    #[inline]
    fn complete_loads() {
        // SAFETY: the barrier changes no register and no memory.
        unsafe { asm!("dsb ishld", options(nostack, preserves_flags)) };
    }

    /// Looks for `CNTVCTSS_EL0` in the auxiliary vector (arch/arm64/include/uapi/asm/hwcap.h).
    fn detect(auxval: fn(usize) -> usize) {
        const AT_HWCAP2: usize = 26;
        const HWCAP2_ECV: usize = 1 << 19;
        NEEDS_ISB.store(auxval(AT_HWCAP2) & HWCAP2_ECV == 0, Relaxed);
    }

    fn stated_frequency() -> Option<u64> {
        let hertz: u64;
        // SAFETY: the instruction only writes its output.
        unsafe {
            asm!("mrs {}, cntfrq_el0", out(reg) hertz, options(nomem, nostack, preserves_flags));
        }
        (hertz != 0).then_some(hertz)
    }
}

/// Whether the CPU may lack `CNTVCTSS_EL0`. The initial value is not 0, so that the linker puts
/// this variable in .data, where the static `CLOCK` is as well. A variable in .bss can be on
/// another page, so a read of the clock could need one more page.
static NEEDS_ISB: AtomicBool = AtomicBool::new(true);
