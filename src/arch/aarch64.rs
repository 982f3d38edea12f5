//! `aarch64`, LP64. ILP32 goes through libc.
//!
//! - Names and version: arch/arm64/kernel/vdso/vdso.lds.S. Mainline has no time and no getcpu.
//!   Android kernels with the vdso32 patches export `__kernel_time`.
//! - Numbers: include/uapi/asm-generic/unistd.h.
//! - Clock source: drivers/clocksource/arm_arch_timer.c.

use super::abi::Shape::{Getcpu, Time64, Timespec64, Timeval64};
use super::abi::{Abi, Discovery, ELFCLASS64, call, function, symbol};

/// The table of `aarch64`.
pub(crate) static ABI: Abi = Abi {
    name: "aarch64",
    machine: 183, // EM_AARCH64
    class: ELFCLASS64,
    version: "LINUX_2.6.39",
    time: function(
        &[symbol("__kernel_time", Time64), symbol("__kernel_clock_gettime", Timespec64)],
        &[call(113, Timespec64), call(169, Timeval64)],
    ),
    gettimeofday: function(
        &[symbol("__kernel_gettimeofday", Timeval64)],
        &[call(169, Timeval64), call(113, Timespec64)],
    ),
    clock_gettime: function(&[symbol("__kernel_clock_gettime", Timespec64)], &[call(113, Timespec64)]),
    clock_getres: function(&[symbol("__kernel_clock_getres", Timespec64)], &[call(114, Timespec64)]),
    getcpu: function(&[], &[call(168, Getcpu)]),
    clock_sources: &["arch_sys_counter"],
    discovery: Discovery { prctl: 167, openat: 56, read: 63, close: 57, rt_sigprocmask: 135 },
};

/// Enters the kernel.
///
/// It is not inlined. A system call may clear the SVE registers beyond the 128 bits that they share
/// with SIMD (Documentation/arch/arm64/sve.rst), as a function call may.
///
/// # Safety
///
/// The system call must be sound with these arguments.
#[cfg(all(target_arch = "aarch64", not(vdso_time_libc_fallback)))]
#[inline(never)]
pub(crate) unsafe fn syscall(number: u32, args: [usize; 5]) -> isize {
    let result;
    // SAFETY: the caller promises that the call is sound. The kernel changes only x0, an output,
    // and the SVE registers, which the callers of a function do not rely on.
    unsafe {
        core::arch::asm!(
            "svc 0",
            in("x8") number as usize,
            inlateout("x0") args[0] => result,
            in("x1") args[1], in("x2") args[2], in("x3") args[3], in("x4") args[4],
            options(nostack),
        );
    }
    result
}

/// The virtual count of the generic timer (Arm Architecture Reference Manual, D12.2).
///
/// Linux lets every program read it. If a CPU reads it wrongly, the kernel traps and corrects the
/// read.
///
/// `CNTVCTSS_EL0`, which needs no `isb`, is undefined on CPUs without FEAT_ECV. So each read would
/// have to test for it.
#[cfg(all(feature = "counter", target_arch = "aarch64", not(vdso_time_libc_fallback)))]
pub(crate) mod counter {
    use core::arch::asm;

    pub(crate) const IS_READABLE: bool = true;
    pub(crate) const IS_PER_CPU: bool = true;

    /// Reads the counter. The CPU may read it before earlier instructions have completed.
    #[inline]
    pub(crate) fn ticks() -> u64 {
        let ticks;
        // SAFETY: mrs only writes its output, and Linux permits it at EL0.
        unsafe { asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags)) };
        ticks
    }

    /// Reads the counter after the branches before it are decided, and so after the loads on which
    /// they depend. `isb` does not wait for other loads.
    #[inline]
    pub(crate) fn ticks_ordered() -> u64 {
        let ticks;
        // SAFETY: isb and mrs only write the output. Without `nomem`, the compiler does not move
        // memory accesses across the read.
        unsafe { asm!("isb", "mrs {}, cntvct_el0", out(reg) ticks, options(nostack, preserves_flags)) };
        ticks
    }

    /// Waits for all earlier loads. It does not order a later `mrs`: `ticks_ordered` does.
    #[inline]
    pub(crate) fn complete_loads() {
        // SAFETY: the barrier changes no register and no memory.
        unsafe { asm!("dsb ishld", options(nostack, preserves_flags)) };
    }

    /// Returns `true`: a system counter has a constant rate.
    pub(crate) fn is_invariant() -> bool {
        true
    }

    /// Returns `CNTFRQ`, which the firmware sets.
    pub(crate) fn stated_frequency() -> Option<u64> {
        let hertz: u64;
        // SAFETY: mrs only writes its output, and Linux permits it at EL0.
        unsafe { asm!("mrs {}, cntfrq_el0", out(reg) hertz, options(nomem, nostack, preserves_flags)) };
        (hertz != 0).then_some(hertz)
    }
}

/// glibc's rseq area, relative to the thread pointer in `TPIDR_EL0`.
#[cfg(all(target_arch = "aarch64", not(vdso_time_libc_fallback)))]
pub(crate) mod rseq {
    use core::arch::asm;

    pub(crate) const NEEDED_HWCAP: Option<usize> = None;

    super::super::abi::rseq_symbols! {
        "adrp {offset}, :got:__rseq_offset",
        "ldr {offset}, [{offset}, :got_lo12:__rseq_offset]",
        "adrp {size}, :got:__rseq_size",
        "ldr {size}, [{size}, :got_lo12:__rseq_size]"
    }

    /// Reads 4 bytes.
    ///
    /// # Safety
    ///
    /// They must be readable in every thread.
    #[inline]
    pub(crate) unsafe fn read(offset: isize) -> u32 {
        let value;
        // SAFETY: the caller promises that the bytes are readable.
        unsafe {
            asm!(
                "mrs {pointer}, tpidr_el0",
                "ldr {value:w}, [{pointer}, {offset}]",
                pointer = out(reg) _, value = out(reg) value, offset = in(reg) offset,
                options(readonly, nostack, preserves_flags),
            );
        }
        value
    }
}
