//! `arm`, EABI, in ARM and in Thumb mode.
//!
//! - Names and version: arch/arm/vdso/vdso.lds.S, and arch/arm64/kernel/vdso32/vdso.lds.S for
//!   32-bit programs on arm64 kernels. Linux 5.5 added `__vdso_clock_gettime64` and
//!   `__vdso_clock_getres` to the vDSO of arm kernels. The vDSO that arm64 kernels map into 32-bit
//!   programs was new in 5.3, and has had both functions since then. Linux 7.0 added
//!   `__vdso_clock_getres_time64`. Since 7.3, kernels without `CONFIG_COMPAT_32BIT_TIME` lack the
//!   32-bit functions. The vDSO of mainline kernels has neither time nor getcpu.
//! - Numbers: arch/arm/tools/syscall.tbl. Linux 5.1 added 403 and 406. The EABI has no time(2).

use crate::arch::abi::Shape::{Getcpu, Timespec32, Timespec64, Timeval32};
use crate::arch::abi::{Abi, Candidate, Discovery, Quirk, Shape, call, entry, entry32, symbol};
use crate::elf::ELFCLASS32;

pub(crate) static ABI: Abi = Abi {
    name: "arm",
    machine: 40, // EM_ARM
    class: ELFCLASS32,
    version: "LINUX_2.6",
    time: entry32(
        GETTIME,
        &[
            call(403, Timespec64),
            call(263, Timespec32),
            call(78, Timeval32),
        ],
    ),
    gettimeofday: entry32(GETTIME, &[call(403, Timespec64), call(78, Timeval32)]),
    clock_gettime: entry32(GETTIME, &[call(403, Timespec64), call(263, Timespec32)]),
    clock_getres: entry32(GETRES, &[call(406, Timespec64), call(264, Timespec32)]),
    getcpu: entry(&[], &[call(345, Getcpu)]),
    kernel_entry: None,
    discovery: Discovery {
        prctl: 172,
        openat: 322,
        read: 3,
        close: 6,
        rt_sigprocmask: 175,
    },
};

const GETTIME: &[Candidate] = &[
    timer("__vdso_clock_gettime64", Timespec64),
    timer("__vdso_clock_gettime", Timespec32),
];
const GETRES: &[Candidate] = &[
    timer("__vdso_clock_getres_time64", Timespec64),
    timer("__vdso_clock_getres", Timespec32),
];

/// Creates the candidate for a symbol whose function reads the timer. A kernel that found no usable
/// timer at boot may have blanked the symbol's name.
const fn timer(name: &'static str, shape: Shape) -> Candidate {
    symbol(name, shape).unless(Quirk::BlankedNames)
}
