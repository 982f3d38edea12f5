//! `x86` (i386).
//!
//! - Names and versions: arch/x86/entry/vdso/vdso32/vdso32.lds.S. Linux 5.3 added
//!   `__vdso_clock_gettime64` and `__vdso_clock_getres`, 6.3 added `__vdso_getcpu`, and 7.0 added
//!   `__vdso_clock_getres_time64`. Since 7.3, kernels without `CONFIG_COMPAT_32BIT_TIME` lack the
//!   32-bit functions.
//! - Numbers: arch/x86/entry/syscalls/syscall_32.tbl. Linux 5.1 added 403 and 406.

use crate::arch::abi::Shape::{Getcpu, Timespec32, Timespec64, Timeval32};
use crate::arch::abi::{Abi, Candidate, Discovery, Quirk, call, entry, entry32, symbol};
use crate::elf::ELFCLASS32;

pub(crate) static ABI: Abi = Abi {
    name: "x86",
    machine: 3, // EM_386
    class: ELFCLASS32,
    version: "LINUX_2.6",
    time: entry32(
        GETTIME,
        &[
            call(403, Timespec64),
            call(265, Timespec32),
            call(78, Timeval32),
        ],
    ),
    gettimeofday: entry32(GETTIME, &[call(403, Timespec64), call(78, Timeval32)]),
    clock_gettime: entry32(GETTIME, &[call(403, Timespec64), call(265, Timespec32)]),
    clock_getres: entry32(GETRES, &[call(406, Timespec64), call(266, Timespec32)]),
    // User-mode QEMU has an image of its own. The getcpu of this image makes the system call
    // gettimeofday by mistake, and so writes more bytes than the caller's two numbers have room for
    // (QEMU 10.0 and 11.1). QEMU relocates its image, so the image's `p_vaddr` is not 0, and
    // `NonzeroLoadAddress` excludes this getcpu.
    getcpu: entry(
        &[symbol("__vdso_getcpu", Getcpu).unless(Quirk::NonzeroLoadAddress)],
        &[call(318, Getcpu)],
    ),
    kernel_entry: Some(("__kernel_vsyscall", "LINUX_2.5")),
    discovery: Discovery {
        prctl: 172,
        openat: 295,
        read: 3,
        close: 6,
        rt_sigprocmask: 175,
    },
};

const GETTIME: &[Candidate] = &[
    symbol("__vdso_clock_gettime64", Timespec64),
    symbol("__vdso_clock_gettime", Timespec32),
];
const GETRES: &[Candidate] = &[
    symbol("__vdso_clock_getres_time64", Timespec64),
    symbol("__vdso_clock_getres", Timespec32),
];
