//! `s390x`.
//!
//! - Names and version: arch/s390/kernel/vdso64/vdso64.lds.S. There is no time. `__kernel_getcpu`
//!   exists since 4.8.
//! - Numbers: arch/s390/kernel/syscalls/syscall.tbl.

use crate::arch::abi::Shape::{Getcpu, Timespec64, Timeval64};
use crate::arch::abi::{
    Abi, Discovery, ELFCLASS64, KERNEL_GETRES, KERNEL_GETTIME, KERNEL_GETTIMEOFDAY, call, function,
    symbol,
};

pub(crate) static ABI: Abi = Abi {
    name: "s390x",
    machine: 22, // EM_S390
    class: ELFCLASS64,
    version: "LINUX_2.6.29",
    time: function(
        KERNEL_GETTIME,
        &[call(260, Timespec64), call(78, Timeval64)],
    ),
    gettimeofday: function(
        KERNEL_GETTIMEOFDAY,
        &[call(78, Timeval64), call(260, Timespec64)],
    ),
    clock_gettime: function(KERNEL_GETTIME, &[call(260, Timespec64)]),
    clock_getres: function(KERNEL_GETRES, &[call(261, Timespec64)]),
    getcpu: function(&[symbol("__kernel_getcpu", Getcpu)], &[call(311, Getcpu)]),
    kernel_entry: None,
    discovery: Discovery {
        prctl: 172,
        openat: 288,
        read: 3,
        close: 6,
        rt_sigprocmask: 175,
    },
};
