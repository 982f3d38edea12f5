//! `powerpc64`. Little-endian programs call the vDSO, and big-endian programs go through libc. In a
//! big-endian program with the ABI ELFv1, a function pointer is the address of a descriptor, so it
//! cannot point to a function of the vDSO (see `can_call` in src/choice.rs).
//!
//! - Names and version: arch/powerpc/kernel/vdso/vdso64.lds.S. They are the same for both byte
//!   orders.
//! - Errors: a function that fails returns a positive error number and sets the flag CR0.SO
//!   (Documentation/ABI/stable/vdso). A C call does not return the flag. So this crate treats every
//!   result but 0 as an error, and then makes the system call. The result of `__kernel_time` is
//!   always the time, because this function cannot fail (arch/powerpc/kernel/vdso/gettimeofday.S).
//! - Numbers: arch/powerpc/kernel/syscalls/syscall.tbl.

use crate::arch::abi::Shape::{Getcpu, Time64, Timespec64, Timeval64};
use crate::arch::abi::{Abi, Discovery, call, entry, symbol};
use crate::elf::ELFCLASS64;

pub(crate) static ABI: Abi = Abi {
    name: "powerpc64",
    machine: 21, // EM_PPC64
    class: ELFCLASS64,
    version: "LINUX_2.6.15",
    time: entry(
        &[
            symbol("__kernel_time", Time64),
            symbol("__kernel_clock_gettime", Timespec64),
        ],
        &[call(246, Timespec64), call(78, Timeval64)],
    ),
    gettimeofday: entry(
        &[symbol("__kernel_gettimeofday", Timeval64)],
        &[call(78, Timeval64), call(246, Timespec64)],
    ),
    clock_gettime: entry(
        &[symbol("__kernel_clock_gettime", Timespec64)],
        &[call(246, Timespec64)],
    ),
    clock_getres: entry(
        &[symbol("__kernel_clock_getres", Timespec64)],
        &[call(247, Timespec64)],
    ),
    getcpu: entry(&[symbol("__kernel_getcpu", Getcpu)], &[call(302, Getcpu)]),
    kernel_entry: None,
    discovery: Discovery {
        prctl: 171,
        openat: 286,
        read: 3,
        close: 6,
        rt_sigprocmask: 174,
    },
};
