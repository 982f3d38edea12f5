//! `aarch64`, LP64. ILP32 goes through libc.
//!
//! - Names and version: arch/arm64/kernel/vdso/vdso.lds.S. Mainline has no time and no getcpu.
//!   Android kernels with the vdso32 patches export `__kernel_time`.
//! - Numbers: include/uapi/asm-generic/unistd.h.
//! - Clock source: drivers/clocksource/arm_arch_timer.c.

#[cfg(all(feature = "counter", target_arch = "aarch64", not(vdso_time_libc_fallback)))]
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::abi::Shape::{Getcpu, Timespec64, Timeval64};
use super::abi::{
    Abi, Discovery, ELFCLASS64, KERNEL_GETRES, KERNEL_GETTIME, KERNEL_GETTIMEOFDAY, KERNEL_TIME, call,
    function,
};

/// The table of `aarch64`.
pub(crate) static ABI: Abi = Abi {
    name: "aarch64",
    machine: 183, // EM_AARCH64
    class: ELFCLASS64,
    version: "LINUX_2.6.39",
    time: function(KERNEL_TIME, &[call(113, Timespec64), call(169, Timeval64)]),
    gettimeofday: function(KERNEL_GETTIMEOFDAY, &[call(169, Timeval64), call(113, Timespec64)]),
    clock_gettime: function(KERNEL_GETTIME, &[call(113, Timespec64)]),
    clock_getres: function(KERNEL_GETRES, &[call(114, Timespec64)]),
    getcpu: function(&[], &[call(168, Getcpu)]),
    clock_sources: &["arch_sys_counter"],
    discovery: Discovery { prctl: 167, openat: 56, read: 63, close: 57, rt_sigprocmask: 135, adjtimex: 171 },
};

// It is not inlined. A system call may clear the SVE registers beyond the 128 bits that they share
// with SIMD (Documentation/arch/arm64/sve.rst), as a function call may.
#[cfg(all(target_arch = "aarch64", not(vdso_time_libc_fallback)))]
super::assembly::syscall! {
    #[inline(never)]
    |number, args, result|
    "svc 0",
    in("x8") number as usize,
    inlateout("x0") args[0] => result,
    in("x1") args[1], in("x2") args[2], in("x3") args[3], in("x4") args[4],
}

// The virtual count of the generic timer (Arm Architecture Reference Manual, D12.2). If a CPU reads
// it wrongly, the kernel traps and corrects the read, of both registers since 5.16
// (arch/arm64/kernel/traps.c, `cntvct_read_handler`). The firmware sets `CNTFRQ`.
//
// `isb` waits for the loads on which earlier branches depend, and for no others. Reads of
// `CNTVCTSS_EL0` (FEAT_ECV) need none: they are in program order and not speculative, as the
// kernel's vDSO relies on (ARM64_HAS_ECV). Assemblers refuse the name for older CPUs.
#[cfg(all(feature = "counter", target_arch = "aarch64", not(vdso_time_libc_fallback)))]
super::assembly::counter! {
    IS_PER_CPU = true;
    ticks: "mrs {}, cntvct_el0";
    ticks_ordered: "isb", "mrs {}, cntvct_el0";
    unless NEEDS_ISB: "mrs {}, s3_3_c14_c0_6";
    stated_frequency: "mrs {}, cntfrq_el0";
}

/// Whether the CPU may lack `CNTVCTSS_EL0`. It is not 0, so it is in .data with the slots.
#[cfg(all(feature = "counter", target_arch = "aarch64", not(vdso_time_libc_fallback)))]
static NEEDS_ISB: AtomicBool = AtomicBool::new(true);

/// Looks for `CNTVCTSS_EL0` in the auxiliary vector (arch/arm64/include/uapi/asm/hwcap.h).
#[cfg(all(feature = "counter", target_arch = "aarch64", not(vdso_time_libc_fallback)))]
pub(crate) fn detect_ticks(auxval: fn(usize) -> usize) {
    const AT_HWCAP2: usize = 26;
    const HWCAP2_ECV: usize = 1 << 19;
    NEEDS_ISB.store(auxval(AT_HWCAP2) & HWCAP2_ECV == 0, Relaxed);
}

/// Waits for all earlier loads. It does not order a later `mrs`: `ticks_ordered` does.
#[cfg(all(feature = "counter", target_arch = "aarch64", not(vdso_time_libc_fallback)))]
#[inline]
pub(crate) fn complete_loads() {
    // SAFETY: the barrier changes no register and no memory.
    unsafe { core::arch::asm!("dsb ishld", options(nostack, preserves_flags)) };
}

#[cfg(all(target_arch = "aarch64", not(vdso_time_libc_fallback)))]
super::assembly::rseq! {
    symbols(nostack, preserves_flags):
        "adrp {offset}, :got:__rseq_offset",
        "ldr {offset}, [{offset}, :got_lo12:__rseq_offset]",
        "adrp {size}, :got:__rseq_size",
        "ldr {size}, [{size}, :got_lo12:__rseq_size]";
    read(reg):
        "mrs {pointer}, tpidr_el0",
        "ldr {value:w}, [{pointer}, {offset}]";
        pointer = out(reg) _
}
