//! The time-stamp counter of `x86` and `x86_64` (Intel SDM volume 3, 19.17; AMD64 APM volume 2, 13.2.4).

#[cfg(target_arch = "x86")]
use core::arch::x86::{__cpuid_count, CpuidResult};
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::{__cpuid_count, CpuidResult};

/// Each of these CPUs has it, and the kernel lets everybody read it, but for `PR_SET_TSC`.
pub(crate) const IS_READABLE: bool = true;

/// The counter, read as early as the CPU likes, but after the read before.
#[inline]
pub(crate) fn ticks() -> u64 {
    let (low, high): (usize, usize);
    // SAFETY: rdtsc writes edx and eax, clearing what is above them, and reads nothing of the program's.
    unsafe {
        core::arch::asm!("rdtsc", out("eax") low, out("edx") high, options(nomem, nostack, preserves_flags));
    }
    ((high as u64) << 32) | low as u64
}

/// The counter, read when everything before has been done: lfence waits for that (on AMD's CPUs because
/// Linux since 4.15 sets `MSR_F10H_DECFG`).
#[inline]
pub(crate) fn ticks_ordered() -> u64 {
    #[cfg(target_feature = "sse2")]
    {
        let (low, high): (usize, usize);
        // SAFETY: as in `ticks`; that it may touch memory keeps the compiler from moving what is before.
        unsafe {
            core::arch::asm!("lfence", "rdtsc", out("eax") low, out("edx") high, options(nostack, preserves_flags));
        }
        ((high as u64) << 32) | low as u64
    }
    #[cfg(not(target_feature = "sse2"))]
    {
        let _ = cpuid(0, 0); // the one thing that every such CPU waits for
        ticks()
    }
}

/// Whether the counter's rate is the same whatever the CPU does (CPUID 0x80000007, EDX bit 8).
pub(crate) fn is_invariant() -> bool {
    const LEAF: u32 = 0x8000_0007;
    cpuid(0x8000_0000, 0).eax >= LEAF && cpuid(LEAF, 0).edx & (1 << 8) != 0
}

/// Crystal x numerator / denominator (CPUID 0x15), where the CPU states all three.
pub(crate) fn stated_frequency() -> Option<u64> {
    const LEAF: u32 = 0x15;
    if cpuid(0, 0).eax < LEAF {
        return None;
    }
    let CpuidResult { eax: denominator, ebx: numerator, ecx: crystal, .. } = cpuid(LEAF, 0);
    let hertz = u64::from(crystal).saturating_mul(numerator.into()).checked_div(denominator.into())?;
    (hertz != 0).then_some(hertz)
}

fn cpuid(leaf: u32, sub: u32) -> CpuidResult {
    #[allow(unused_unsafe, reason = "a safe function since Rust 1.94")]
    // SAFETY: every CPU that has a vDSO has the instruction.
    unsafe {
        __cpuid_count(leaf, sub)
    }
}
