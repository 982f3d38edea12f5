//! `aarch64`, LP64. ILP32 goes through libc.
//!
//! - Names and version: arch/arm64/kernel/vdso/vdso.lds.S. The vDSO of mainline kernels has neither
//!   time nor getcpu. The vDSO of Android kernels with the vdso32 patches has `__kernel_time`.
//! - Numbers: include/uapi/asm-generic/unistd.h.

use crate::arch::abi::Shape::{Getcpu, Time64, Timespec64, Timeval64};
use crate::arch::abi::{Abi, Discovery, call, entry, symbol};
use crate::elf::ELFCLASS64;

pub(crate) static ABI: Abi = Abi {
    name: "aarch64",
    machine: 183, // EM_AARCH64
    class: ELFCLASS64,
    version: "LINUX_2.6.39",
    time: entry(
        &[
            symbol("__kernel_time", Time64),
            symbol("__kernel_clock_gettime", Timespec64),
        ],
        &[call(113, Timespec64), call(169, Timeval64)],
    ),
    gettimeofday: entry(
        &[symbol("__kernel_gettimeofday", Timeval64)],
        &[call(169, Timeval64), call(113, Timespec64)],
    ),
    clock_gettime: entry(
        &[symbol("__kernel_clock_gettime", Timespec64)],
        &[call(113, Timespec64)],
    ),
    clock_getres: entry(
        &[symbol("__kernel_clock_getres", Timespec64)],
        &[call(114, Timespec64)],
    ),
    getcpu: entry(&[], &[call(168, Getcpu)]),
    kernel_entry: None,
    discovery: Discovery {
        prctl: 167,
        openat: 56,
        read: 63,
        close: 57,
        rt_sigprocmask: 135,
    },
};
