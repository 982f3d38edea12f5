//! `x86_64`, LP64. x32 has its own system calls and goes through libc.
//!
//! - Names and version: arch/x86/entry/vdso/vdso.lds.S (`vdso64/vdso64.lds.S` since 7.0).
//! - Numbers: arch/x86/entry/syscalls/syscall_64.tbl.
//! - Clock sources: arch/x86/kernel/tsc.c.

use super::abi::Shape::{Getcpu, Timespec64, Timeval64};
use super::abi::{
    Abi, Discovery, ELFCLASS64, Quirk, VDSO_GETRES, VDSO_GETTIME, VDSO_GETTIMEOFDAY, VDSO_TIME, call,
    function, symbol,
};

/// The table of `x86_64`.
pub(crate) static ABI: Abi = Abi {
    name: "x86_64",
    machine: 62, // EM_X86_64
    class: ELFCLASS64,
    version: "LINUX_2.6",
    time: function(VDSO_TIME, &[call(228, Timespec64), call(96, Timeval64)]),
    gettimeofday: function(VDSO_GETTIMEOFDAY, &[call(96, Timeval64), call(228, Timespec64)]),
    clock_gettime: function(VDSO_GETTIME, &[call(228, Timespec64)]),
    clock_getres: function(VDSO_GETRES, &[call(229, Timespec64)]),
    // getcpu of QEMU's own image, which QEMU relocates, returns CPU 0, node 0 (QEMU 10.0).
    getcpu: function(&[symbol("__vdso_getcpu", Getcpu).unless(Quirk::Relocated)], &[call(309, Getcpu)]),
    discovery: Discovery { prctl: 157, openat: 257, read: 0, close: 3, rt_sigprocmask: 14 },
};

#[cfg(all(target_arch = "x86_64", not(vdso_time_libc_fallback)))]
super::assembly::syscall! {
    #[inline]
    |number, args, result|
    "syscall",
    inlateout("rax") number as usize => result,
    in("rdi") args[0], in("rsi") args[1], in("rdx") args[2], in("r10") args[3], in("r8") args[4],
    lateout("rcx") _, lateout("r11") _, // arch/x86/entry/entry_64.S
}

#[cfg(all(target_arch = "x86_64", not(vdso_time_libc_fallback)))]
super::assembly::rseq! {
    symbols(nostack, preserves_flags):
        "mov {offset}, qword ptr [rip + __rseq_offset@GOTPCREL]",
        "mov {size}, qword ptr [rip + __rseq_size@GOTPCREL]";
    read(reg): "mov {value:e}, dword ptr fs:[{offset}]"
}
