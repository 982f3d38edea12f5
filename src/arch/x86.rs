//! `x86` (i386).
//!
//! Names and versions: arch/x86/entry/vdso/vdso32/vdso32.lds.S; `__vdso_clock_gettime64` and
//! `__vdso_clock_getres` came with 5.3, `__vdso_getcpu` with 6.3, `__vdso_clock_getres_time64` with 7.0, and
//! from 7.3 a kernel without `CONFIG_COMPAT_32BIT_TIME` has no 32-bit one.
//! Numbers: arch/x86/entry/syscalls/syscall_32.tbl; 403 and 406 came with 5.1.

use super::abi::{Abi, Discovery, ELFCLASS32, Function, Quirk, Shape, call, symbol};

/// The table of `x86`.
pub(crate) static ABI: Abi = Abi {
    name: "x86",
    machine: 3, // EM_386
    class: ELFCLASS32,
    version: "LINUX_2.6",
    time: Function {
        candidates: &[
            symbol("__vdso_clock_gettime64", Shape::Timespec64),
            symbol("__vdso_clock_gettime", Shape::Timespec32),
            symbol("__vdso_time", Shape::Time32),
        ],
        syscalls: &[call(403, Shape::Timespec64)],
        time32_syscalls: &[call(265, Shape::Timespec32), call(78, Shape::Timeval32)],
    },
    gettimeofday: Function {
        candidates: &[
            symbol("__vdso_clock_gettime64", Shape::Timespec64),
            symbol("__vdso_gettimeofday", Shape::Timeval32),
        ],
        syscalls: &[call(403, Shape::Timespec64)],
        time32_syscalls: &[call(78, Shape::Timeval32)],
    },
    clock_gettime: Function {
        candidates: &[
            symbol("__vdso_clock_gettime64", Shape::Timespec64),
            symbol("__vdso_clock_gettime", Shape::Timespec32),
        ],
        syscalls: &[call(403, Shape::Timespec64)],
        time32_syscalls: &[call(265, Shape::Timespec32)],
    },
    clock_getres: Function {
        candidates: &[
            symbol("__vdso_clock_getres_time64", Shape::Timespec64),
            symbol("__vdso_clock_getres", Shape::Timespec32),
        ],
        syscalls: &[call(406, Shape::Timespec64)],
        time32_syscalls: &[call(266, Shape::Timespec32)],
    },
    getcpu: Function {
        // QEMU's own image, which its loader relocates, has a getcpu that makes the system call
        // gettimeofday and so writes past its pointers (seen in 10.0 and 11.1).
        candidates: &[symbol("__vdso_getcpu", Shape::Getcpu).unless(Quirk::Relocated)],
        syscalls: &[call(318, Shape::Getcpu)],
        time32_syscalls: &[],
    },
    clock_sources: &["tsc", "tsc-early"], // arch/x86/kernel/tsc.c
    discovery: Discovery { prctl: 172, openat: 295, read: 3, close: 6, rt_sigprocmask: 175 },
};

#[cfg(all(feature = "counter", target_arch = "x86", not(vdso_time_libc_fallback)))]
pub(crate) use super::tsc as counter;

#[cfg(all(target_arch = "x86", not(vdso_time_libc_fallback)))]
pub(crate) use super::i386_entry::syscall;
