//! `aarch64`, LP64. ILP32 goes through libc.
//!
//! - Names and version: arch/arm64/kernel/vdso/vdso.lds.S. Mainline has no time and no getcpu.
//!   Android kernels with the vdso32 patches export `__kernel_time`.
//! - Numbers: include/uapi/asm-generic/unistd.h.

use crate::arch::abi::Shape::{Getcpu, Timespec64, Timeval64};
use crate::arch::abi::{
    Abi, Discovery, ELFCLASS64, KERNEL_GETRES, KERNEL_GETTIME, KERNEL_GETTIMEOFDAY, KERNEL_TIME,
    call, function,
};

pub(crate) static ABI: Abi = Abi {
    name: "aarch64",
    machine: 183, // EM_AARCH64
    class: ELFCLASS64,
    version: "LINUX_2.6.39",
    time: function(KERNEL_TIME, &[call(113, Timespec64), call(169, Timeval64)]),
    gettimeofday: function(
        KERNEL_GETTIMEOFDAY,
        &[call(169, Timeval64), call(113, Timespec64)],
    ),
    clock_gettime: function(KERNEL_GETTIME, &[call(113, Timespec64)]),
    clock_getres: function(KERNEL_GETRES, &[call(114, Timespec64)]),
    getcpu: function(&[], &[call(168, Getcpu)]),
    kernel_entry: None,
    discovery: Discovery {
        prctl: 167,
        openat: 56,
        read: 63,
        close: 57,
        rt_sigprocmask: 135,
    },
};
