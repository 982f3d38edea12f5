//! The time-stamp counter of `x86` and `x86_64` (Intel SDM volume 3, 19.17; AMD64 APM volume 2,
//! 13.2.4). The clock sources are in arch/x86/kernel/tsc.c.

use core::arch::asm;
#[cfg(target_arch = "x86")]
use core::arch::x86::{__cpuid_count, CpuidResult};
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::{__cpuid_count, CpuidResult};

use crate::machine::arch::counter::Counter;

pub(crate) enum CpuCounter {}

impl Counter for CpuCounter {
    const CLOCK_SOURCES: &'static [&'static str] = &["tsc", "tsc-early"];
    /// The hypervisor writes the scale and the offset of `kvm-clock` to a page, which also contains
    /// a stable bit. The vDSO checks this bit at each read, and makes a system call if the bit is
    /// clear (`vread_pvclock` of arch/x86/include/asm/vdso/gettimeofday.h).
    const PARAVIRTUAL: &'static [&'static str] = &["kvm-clock"];
    /// Every program may read the counter, except after `PR_SET_TSC`.
    const IS_READABLE: bool = true;
    const PRCTL: Option<u32> = Some(if cfg!(target_arch = "x86") { 172 } else { 157 });

    #[inline]
    fn ticks() -> u64 {
        let (low, high): (usize, usize);
        // SAFETY: rdtsc only writes edx and eax, and clears the upper halves of their registers.
        unsafe {
            asm!("rdtsc", out("eax") low, out("edx") high, options(nomem, nostack, preserves_flags));
        }
        ((high as u64) << 32) | low as u64
    }

    #[inline]
    fn ticks_ordered() -> u64 {
        Self::ordered(|ticks| ticks())
    }

    /// Waits for all earlier instructions with `lfence`. On AMD's CPUs `lfence` does this because
    /// Linux sets `MSR_F10H_DECFG` (since 4.15).
    ///
    /// If the counter is not used, the vDSO answers, and its function has a fence as well. So an
    /// ordered read then waits for two fences, and takes 1.33 times as long as the vDSO's function.
    ///
    /// An earlier version skipped this fence while the counter was not used: one bit of the latch's
    /// sequence number said whether it was, and the read tested that bit before the fence. Without
    /// the counter, the read then took only 1.07 times as long as the vDSO's function. But with the
    /// counter, the fence also waited for the load of that bit, so an isolated read took 0.9 ns
    /// longer. Reads from the counter are the usual case, and a program without a counter can use
    /// vdso-time's own clocks, so that test was left out.
    #[inline]
    fn ordered<T>(read: impl FnOnce(fn() -> u64) -> T) -> T {
        #[cfg(not(target_feature = "sse2"))]
        let _ = cpuid(0, 0); // serializes on every CPU without lfence
        #[cfg(target_feature = "sse2")]
        // SAFETY: lfence changes nothing. `nomem` is left out, so that the compiler does not move
        // memory accesses across it.
        unsafe {
            asm!("lfence", options(nostack, preserves_flags));
        };
        read(Self::ticks)
    }

    /// Returns eax of `rdtsc`, and hides from the compiler that it is a half of the tick.
    ///
    /// If the compiler knows this, it computes the low half of a difference as a part of the whole
    /// difference, which needs two more instructions that combine edx and eax. An ordered read then
    /// took 16.8 ns instead of 16.1 on an AMD EPYC.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    fn low_half(tick: u64) -> u32 {
        let mut low = tick as u32;
        // SAFETY: the assembly is a comment, so it changes nothing.
        unsafe {
            asm!("/* {0:e} */", inout(reg) low, options(pure, nomem, nostack, preserves_flags));
        }
        low
    }

    /// Reads CPUID 0x80000007, EDX bit 8.
    fn is_invariant() -> bool {
        const LEAF: u32 = 0x8000_0007;
        cpuid(0x8000_0000, 0).eax >= LEAF && cpuid(LEAF, 0).edx & (1 << 8) != 0
    }

    /// Returns crystal x numerator / denominator (CPUID 0x15), if the CPU states all three.
    fn stated_frequency() -> Option<u64> {
        const LEAF: u32 = 0x15;
        if cpuid(0, 0).eax < LEAF {
            return None;
        }
        let CpuidResult {
            eax: denominator,
            ebx: numerator,
            ecx: crystal,
            ..
        } = cpuid(LEAF, 0);
        let hertz = u64::from(crystal)
            .saturating_mul(numerator.into())
            .checked_div(denominator.into())?;
        (hertz != 0).then_some(hertz)
    }
}

fn cpuid(leaf: u32, sub: u32) -> CpuidResult {
    #[allow(unused_unsafe, reason = "a safe function since Rust 1.94")]
    // SAFETY: rustc's x86 targets need at least a Pentium, which has cpuid.
    unsafe {
        __cpuid_count(leaf, sub)
    }
}
