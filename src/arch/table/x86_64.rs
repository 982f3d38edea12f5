//! `x86_64`, LP64. x32 has its own system calls and goes through libc.
//!
//! - Names and version: arch/x86/entry/vdso/vdso.lds.S (`vdso64/vdso64.lds.S` since 7.0).
//! - Numbers: arch/x86/entry/syscalls/syscall_64.tbl.

use crate::arch::abi::Shape::{Getcpu, Time64, Timespec64, Timeval64};
use crate::arch::abi::{Abi, Discovery, Quirk, call, entry, symbol};
use crate::elf::ELFCLASS64;

pub(crate) static ABI: Abi = Abi {
    name: "x86_64",
    machine: 62, // EM_X86_64
    class: ELFCLASS64,
    version: "LINUX_2.6",
    time: entry(
        &[
            symbol("__vdso_time", Time64),
            symbol("__vdso_clock_gettime", Timespec64),
        ],
        &[call(228, Timespec64), call(96, Timeval64)],
    ),
    gettimeofday: entry(
        &[symbol("__vdso_gettimeofday", Timeval64)],
        &[call(96, Timeval64), call(228, Timespec64)],
    ),
    clock_gettime: entry(
        &[symbol("__vdso_clock_gettime", Timespec64)],
        &[call(228, Timespec64)],
    ),
    clock_getres: entry(
        &[symbol("__vdso_clock_getres", Timespec64)],
        &[call(229, Timespec64)],
    ),
    // User-mode QEMU has an image of its own, whose getcpu always returns CPU 0 and node 0 (QEMU
    // 10.0). QEMU relocates its image, so the `p_vaddr` of the image is not 0. `NonzeroLoadAddress`
    // therefore excludes this getcpu.
    getcpu: entry(
        &[symbol("__vdso_getcpu", Getcpu).unless(Quirk::NonzeroLoadAddress)],
        &[call(309, Getcpu)],
    ),
    kernel_entry: None,
    discovery: Discovery {
        prctl: 157,
        openat: 257,
        read: 0,
        close: 3,
        rt_sigprocmask: 14,
    },
};
