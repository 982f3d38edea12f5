//! `aarch64`, LP64. ILP32 goes through libc.
//!
//! - Names and version: arch/arm64/kernel/vdso/vdso.lds.S. Mainline has no time and no getcpu.
//!   Android kernels with the vdso32 patches export `__kernel_time`.
//! - Numbers: include/uapi/asm-generic/unistd.h.
//! - Clock source: drivers/clocksource/arm_arch_timer.c.

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
    discovery: Discovery { prctl: 167, openat: 56, read: 63, close: 57, rt_sigprocmask: 135 },
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
