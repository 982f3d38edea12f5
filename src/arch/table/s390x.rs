//! `s390x`.
//!
//! - Names and version: arch/s390/kernel/vdso64/vdso64.lds.S. The image has no `time()`. Linux 4.8
//!   added `__kernel_getcpu`.
//! - Numbers: arch/s390/kernel/syscalls/syscall.tbl.

use crate::arch::abi::Shape::{Getcpu, Timespec64, Timeval64};
use crate::arch::abi::{Abi, Discovery, call, entry, symbol};
use crate::elf::ELFCLASS64;

pub(crate) static ABI: Abi = Abi {
    name: "s390x",
    machine: 22, // EM_S390
    class: ELFCLASS64,
    version: "LINUX_2.6.29",
    time: entry(
        &[symbol("__kernel_clock_gettime", Timespec64)],
        &[call(260, Timespec64), call(78, Timeval64)],
    ),
    gettimeofday: entry(
        &[symbol("__kernel_gettimeofday", Timeval64)],
        &[call(78, Timeval64), call(260, Timespec64)],
    ),
    clock_gettime: entry(
        &[symbol("__kernel_clock_gettime", Timespec64)],
        &[call(260, Timespec64)],
    ),
    clock_getres: entry(
        &[symbol("__kernel_clock_getres", Timespec64)],
        &[call(261, Timespec64)],
    ),
    getcpu: entry(&[symbol("__kernel_getcpu", Getcpu)], &[call(311, Getcpu)]),
    kernel_entry: None,
    discovery: Discovery {
        prctl: 172,
        openat: 288,
        read: 3,
        close: 6,
        rt_sigprocmask: 175,
    },
};
