//! `loongarch64`.
//!
//! - Names and version: arch/loongarch/vdso/vdso.lds.S. There is no time.
//! - Numbers: include/uapi/asm-generic/unistd.h.

use crate::arch::abi::Shape::{Getcpu, Timespec64, Timeval64};
use crate::arch::abi::{
    Abi, Discovery, ELFCLASS64, VDSO_GETRES, VDSO_GETTIME, VDSO_GETTIMEOFDAY, call, function,
    symbol,
};

pub(crate) static ABI: Abi = Abi {
    name: "loongarch64",
    machine: 258, // EM_LOONGARCH
    class: ELFCLASS64,
    version: "LINUX_5.10",
    time: function(VDSO_GETTIME, &[call(113, Timespec64), call(169, Timeval64)]),
    gettimeofday: function(
        VDSO_GETTIMEOFDAY,
        &[call(169, Timeval64), call(113, Timespec64)],
    ),
    clock_gettime: function(VDSO_GETTIME, &[call(113, Timespec64)]),
    clock_getres: function(VDSO_GETRES, &[call(114, Timespec64)]),
    getcpu: function(&[symbol("__vdso_getcpu", Getcpu)], &[call(168, Getcpu)]),
    kernel_entry: None,
    discovery: Discovery {
        prctl: 167,
        openat: 56,
        read: 63,
        close: 57,
        rt_sigprocmask: 135,
    },
};
