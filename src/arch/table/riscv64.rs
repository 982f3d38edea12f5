//! `riscv64`.
//!
//! - Names and version: arch/riscv/kernel/vdso/vdso.lds.S. The image has no `time()`.
//!   `__vdso_getcpu` makes the system call (arch/riscv/kernel/vdso/getcpu.S). Before Linux 5.8, all
//!   functions of the vDSO did this.
//! - Numbers: include/uapi/asm-generic/unistd.h.

use crate::arch::abi::Shape::{Getcpu, Timespec64, Timeval64};
use crate::arch::abi::{Abi, Discovery, call, entry, symbol};
use crate::elf::ELFCLASS64;

pub(crate) static ABI: Abi = Abi {
    name: "riscv64",
    machine: 243, // EM_RISCV
    class: ELFCLASS64,
    version: "LINUX_4.15",
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
