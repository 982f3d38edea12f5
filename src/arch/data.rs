//! Architectures whose images this crate reads on any machine, but whose programs call libc.
//!
//! Their numbers, and those of their fallbacks, are what
//! [`Routes::of_image`](crate::Routes::of_image) reports.

use super::abi::Shape::{Getcpu, Timespec32, Timespec64, Timeval32, Timeval64};
use super::abi::{
    Abi, Discovery, ELFCLASS32, ELFCLASS64, GETRES_32, GETTIME_32, GETTIMEOFDAY_32, VDSO_GETRES,
    VDSO_GETTIME, VDSO_GETTIMEOFDAY, VDSO_TIME, call, function, symbol,
};

/// The table of `mips`, o32.
///
/// - Names and version: arch/mips/vdso/vdso.lds.S. The image of n32 has the same names, the same
///   machine and the same class, and other system calls.
/// - Numbers: arch/mips/kernel/syscalls/syscall_o32.tbl, plus 4000.
pub(super) static MIPS: Abi = Abi {
    name: "mips",
    machine: 8, // EM_MIPS
    class: ELFCLASS32,
    version: "LINUX_2.6",
    time: function(GETTIME_32, &[call(4403, Timespec64)])
        .or_time32(&[call(4263, Timespec32), call(4078, Timeval32)]),
    gettimeofday: function(GETTIMEOFDAY_32, &[call(4403, Timespec64)]).or_time32(&[call(4078, Timeval32)]),
    clock_gettime: function(GETTIME_32, &[call(4403, Timespec64)]).or_time32(&[call(4263, Timespec32)]),
    clock_getres: function(GETRES_32, &[call(4406, Timespec64)]).or_time32(&[call(4264, Timespec32)]),
    getcpu: function(&[], &[call(4312, Getcpu)]),
    discovery: Discovery { prctl: 4192, openat: 4288, read: 4003, close: 4006, rt_sigprocmask: 4195 },
};

/// The table of `mips64`, n64.
///
/// - Names and version: arch/mips/vdso/vdso.lds.S.
/// - Numbers: arch/mips/kernel/syscalls/syscall_n64.tbl, plus 5000.
pub(super) static MIPS64: Abi = Abi {
    name: "mips64",
    machine: 8, // EM_MIPS
    class: ELFCLASS64,
    version: "LINUX_2.6",
    time: function(VDSO_GETTIME, &[call(5222, Timespec64), call(5094, Timeval64)]),
    gettimeofday: function(VDSO_GETTIMEOFDAY, &[call(5094, Timeval64), call(5222, Timespec64)]),
    clock_gettime: function(VDSO_GETTIME, &[call(5222, Timespec64)]),
    clock_getres: function(VDSO_GETRES, &[call(5223, Timespec64)]),
    getcpu: function(&[], &[call(5271, Getcpu)]),
    discovery: Discovery { prctl: 5153, openat: 5247, read: 5000, close: 5003, rt_sigprocmask: 5014 },
};

/// The table of `riscv32`. Its image has no clock functions.
///
/// - Names and version: arch/riscv/kernel/vdso/vdso.lds.S.
/// - Numbers: include/uapi/asm-generic/unistd.h. There are no 32-bit times.
pub(super) static RISCV32: Abi = Abi {
    name: "riscv32",
    machine: 243, // EM_RISCV
    class: ELFCLASS32,
    version: "LINUX_4.15",
    time: function(&[], &[call(403, Timespec64)]),
    gettimeofday: function(&[], &[call(403, Timespec64)]),
    clock_gettime: function(&[], &[call(403, Timespec64)]),
    clock_getres: function(&[], &[call(406, Timespec64)]),
    getcpu: function(&[symbol("__vdso_getcpu", Getcpu)], &[call(168, Getcpu)]),
    discovery: Discovery { prctl: 167, openat: 56, read: 63, close: 57, rt_sigprocmask: 135 },
};

/// The table of `sparc64`.
///
/// - Names and version: arch/sparc/vdso/vdso.lds.S. The kernel writes a jump to the `_stick` forms
///   into the others where the CPU has that register (arch/sparc/vdso/vma.c, `stick_patch`).
/// - Numbers: arch/sparc/kernel/syscalls/syscall.tbl.
pub(super) static SPARC64: Abi = Abi {
    name: "sparc64",
    machine: 43, // EM_SPARCV9
    class: ELFCLASS64,
    version: "LINUX_2.6",
    time: function(VDSO_GETTIME, &[call(257, Timespec64), call(116, Timeval64)]),
    gettimeofday: function(VDSO_GETTIMEOFDAY, &[call(116, Timeval64), call(257, Timespec64)]),
    clock_gettime: function(VDSO_GETTIME, &[call(257, Timespec64)]),
    clock_getres: function(&[], &[call(258, Timespec64)]),
    getcpu: function(&[], &[call(308, Getcpu)]),
    discovery: Discovery { prctl: 147, openat: 284, read: 3, close: 6, rt_sigprocmask: 103 },
};

/// The bit that marks the system calls of x32 (arch/x86/include/uapi/asm/unistd.h).
const X32_BIT: u32 = 0x4000_0000;

/// The table of x32: `x86_64` with 32-bit pointers and 64-bit times.
///
/// - Names and version: arch/x86/entry/vdso/vdsox32.lds.S.
/// - Numbers: arch/x86/entry/syscalls/syscall_64.tbl.
pub(super) static X32: Abi = Abi {
    name: "x32",
    machine: 62, // EM_X86_64
    class: ELFCLASS32,
    version: "LINUX_2.6",
    time: function(VDSO_TIME, &[call(X32_BIT + 228, Timespec64), call(X32_BIT + 96, Timeval64)]),
    gettimeofday: function(
        VDSO_GETTIMEOFDAY,
        &[call(X32_BIT + 96, Timeval64), call(X32_BIT + 228, Timespec64)],
    ),
    clock_gettime: function(VDSO_GETTIME, &[call(X32_BIT + 228, Timespec64)]),
    clock_getres: function(VDSO_GETRES, &[call(X32_BIT + 229, Timespec64)]),
    getcpu: function(&[symbol("__vdso_getcpu", Getcpu)], &[call(X32_BIT + 309, Getcpu)]),
    discovery: Discovery {
        prctl: X32_BIT + 157,
        openat: X32_BIT + 257,
        read: X32_BIT,
        close: X32_BIT + 3,
        rt_sigprocmask: X32_BIT + 14,
    },
};
