//! `loongarch64`.
//!
//! - Names and version: arch/loongarch/vdso/vdso.lds.S. There is no time.
//! - Numbers: include/uapi/asm-generic/unistd.h.
//! - Clock source: arch/loongarch/kernel/time.c.

use super::abi::Shape::{Getcpu, Timespec64, Timeval64};
use super::abi::{
    Abi, Discovery, ELFCLASS64, VDSO_GETRES, VDSO_GETTIME, VDSO_GETTIMEOFDAY, call, function, symbol,
};

/// The table of `loongarch64`.
pub(crate) static ABI: Abi = Abi {
    name: "loongarch64",
    machine: 258, // EM_LOONGARCH
    class: ELFCLASS64,
    version: "LINUX_5.10",
    time: function(VDSO_GETTIME, &[call(113, Timespec64), call(169, Timeval64)]),
    gettimeofday: function(VDSO_GETTIMEOFDAY, &[call(169, Timeval64), call(113, Timespec64)]),
    clock_gettime: function(VDSO_GETTIME, &[call(113, Timespec64)]),
    clock_getres: function(VDSO_GETRES, &[call(114, Timespec64)]),
    getcpu: function(&[symbol("__vdso_getcpu", Getcpu)], &[call(168, Getcpu)]),
    discovery: Discovery { prctl: 167, openat: 56, read: 63, close: 57, rt_sigprocmask: 135 },
};

#[cfg(all(target_arch = "loongarch64", not(vdso_time_libc_fallback)))]
super::assembly::syscall! {
    #[inline]
    |number, args, result|
    "syscall 0",
    in("$a7") number as usize,
    inlateout("$a0") args[0] => result,
    in("$a1") args[1], in("$a2") args[2], in("$a3") args[3], in("$a4") args[4],
    // arch/loongarch/kernel/entry.S
    lateout("$t0") _, lateout("$t1") _, lateout("$t2") _, lateout("$t3") _, lateout("$t4") _,
    lateout("$t5") _, lateout("$t6") _, lateout("$t7") _, lateout("$t8") _,
}


#[cfg(all(target_arch = "loongarch64", not(vdso_time_libc_fallback)))]
super::assembly::rseq! {
    symbols(nostack, preserves_flags): "la.got {offset}, __rseq_offset", "la.got {size}, __rseq_size";
    read(reg): "ldx.w {value}, $tp, {offset}"
}
