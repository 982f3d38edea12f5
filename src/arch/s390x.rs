//! `s390x`.
//!
//! - Names and version: arch/s390/kernel/vdso64/vdso64.lds.S. There is no time. `__kernel_getcpu`
//!   exists since 4.8.
//! - Numbers: arch/s390/kernel/syscalls/syscall.tbl.
//! - Clock source: arch/s390/kernel/time.c.

use super::abi::Shape::{Getcpu, Timespec64, Timeval64};
use super::abi::{
    Abi, Discovery, ELFCLASS64, KERNEL_GETRES, KERNEL_GETTIME, KERNEL_GETTIMEOFDAY, call, function, symbol,
};

/// The table of `s390x`.
pub(crate) static ABI: Abi = Abi {
    name: "s390x",
    machine: 22, // EM_S390
    class: ELFCLASS64,
    version: "LINUX_2.6.29",
    time: function(KERNEL_GETTIME, &[call(260, Timespec64), call(78, Timeval64)]),
    gettimeofday: function(KERNEL_GETTIMEOFDAY, &[call(78, Timeval64), call(260, Timespec64)]),
    clock_gettime: function(KERNEL_GETTIME, &[call(260, Timespec64)]),
    clock_getres: function(KERNEL_GETRES, &[call(261, Timespec64)]),
    getcpu: function(&[symbol("__kernel_getcpu", Getcpu)], &[call(311, Getcpu)]),
    discovery: Discovery { prctl: 172, openat: 288, read: 3, close: 6, rt_sigprocmask: 175 },
};

#[cfg(all(target_arch = "s390x", not(vdso_time_libc_fallback)))]
super::assembly::syscall! {
    #[inline]
    |number, args, result|
    "svc 0",
    in("r1") number as usize,
    inlateout("r2") args[0] => result,
    in("r3") args[1], in("r4") args[2], in("r5") args[3], in("r6") args[4],
}

// The thread pointer is in the access registers 0 and 1.
#[cfg(all(target_arch = "s390x", not(vdso_time_libc_fallback)))]
super::assembly::rseq! {
    symbols(nostack, preserves_flags): "lgrl {offset}, __rseq_offset@GOT", "lgrl {size}, __rseq_size@GOT";
    read(reg_addr):
        "ear {pointer}, %a0",
        "sllg {pointer}, {pointer}, 32",
        "ear {pointer}, %a1",
        "l {value}, 0({pointer}, {offset})";
        pointer = out(reg_addr) _
}
