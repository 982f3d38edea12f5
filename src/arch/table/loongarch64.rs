//! `loongarch64`.
//!
//! - Names and version: arch/loongarch/vdso/vdso.lds.S. The image has no `time()`.
//! - Numbers: include/uapi/asm-generic/unistd.h.

use crate::arch::abi::Shape::{Getcpu, Timespec64, Timeval64};
use crate::arch::abi::{Abi, Discovery, call, entry, symbol};
use crate::elf::ELFCLASS64;

pub(crate) static ABI: Abi = Abi {
    name: "loongarch64",
    machine: 258, // EM_LOONGARCH
    class: ELFCLASS64,
    version: "LINUX_5.10",
    time: entry(
        &[symbol("__vdso_clock_gettime", Timespec64)],
        &[call(113, Timespec64), call(169, Timeval64)],
    ),
    gettimeofday: entry(
        &[symbol("__vdso_gettimeofday", Timeval64)],
        &[call(169, Timeval64), call(113, Timespec64)],
    ),
    clock_gettime: entry(
        &[symbol("__vdso_clock_gettime", Timespec64)],
        &[call(113, Timespec64)],
    ),
    clock_getres: entry(
        &[symbol("__vdso_clock_getres", Timespec64)],
        &[call(114, Timespec64)],
    ),
    getcpu: entry(&[symbol("__vdso_getcpu", Getcpu)], &[call(168, Getcpu)]),
    kernel_entry: None,
    discovery: Discovery {
        prctl: 167,
        openat: 56,
        read: 63,
        close: 57,
        rt_sigprocmask: 135,
    },
};
