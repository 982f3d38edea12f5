//! `arm`, EABI, in ARM and in Thumb mode.
//!
//! Names and version: arch/arm/vdso/vdso.lds.S and, for 32-bit programs on arm64 kernels,
//! arch/arm64/kernel/vdso32/vdso.lds.S; `__vdso_clock_gettime64` and `__vdso_clock_getres` came with 5.5,
//! `__vdso_clock_getres_time64` with 7.0, and from 7.3 a kernel without `CONFIG_COMPAT_32BIT_TIME` has no
//! 32-bit one. There is no time and no getcpu in mainline; Android kernels with the vdso32 patches export
//! `__vdso_time`, which reads no timer and so stays good where the names of the others are blank.
//! Numbers: arch/arm/tools/syscall.tbl; 403 and 406 came with 5.1, and time(2) is not part of the EABI.

use super::abi::{Abi, Candidate, Discovery, ELFCLASS32, Function, Quirk, Shape, call};

/// The table of `arm`.
pub(crate) static ABI: Abi = Abi {
    name: "arm",
    machine: 40, // EM_ARM
    class: ELFCLASS32,
    version: "LINUX_2.6",
    time: Function {
        candidates: &[
            symbol("__vdso_clock_gettime64", Shape::Timespec64),
            symbol("__vdso_clock_gettime", Shape::Timespec32),
            Candidate { unless: None, ..symbol("__vdso_time", Shape::Time32) },
        ],
        syscalls: &[call(403, Shape::Timespec64), call(263, Shape::Timespec32), call(78, Shape::Timeval32)],
    },
    gettimeofday: Function {
        candidates: &[
            symbol("__vdso_clock_gettime64", Shape::Timespec64),
            symbol("__vdso_gettimeofday", Shape::Timeval32),
        ],
        syscalls: &[call(403, Shape::Timespec64), call(78, Shape::Timeval32)],
    },
    clock_gettime: Function {
        candidates: &[
            symbol("__vdso_clock_gettime64", Shape::Timespec64),
            symbol("__vdso_clock_gettime", Shape::Timespec32),
        ],
        syscalls: &[call(403, Shape::Timespec64), call(263, Shape::Timespec32)],
    },
    clock_getres: Function {
        candidates: &[
            symbol("__vdso_clock_getres_time64", Shape::Timespec64),
            symbol("__vdso_clock_getres", Shape::Timespec32),
        ],
        syscalls: &[call(406, Shape::Timespec64), call(264, Shape::Timespec32)],
    },
    getcpu: Function { candidates: &[], syscalls: &[call(345, Shape::Getcpu)] },
    discovery: Discovery { prctl: 172, openat: 322, read: 3, close: 6, rt_sigprocmask: 175 },
};

const fn symbol(name: &'static str, shape: Shape) -> Candidate {
    Candidate { name, shape, unless: Some(Quirk::BlankedNames) }
}

/// Enters the kernel.
///
/// # Safety
/// The number and the arguments must make a call that keeps Rust's rules.
#[cfg(all(target_arch = "arm", not(vdso_time_absent)))]
#[inline]
pub(crate) unsafe fn syscall(number: u32, args: [usize; 5]) -> isize {
    let result;
    // The number goes in r7, which is the frame pointer in Thumb mode and no operand there: it is saved in
    // another register, in both modes alike.
    // SAFETY: the caller vouches for the call; the kernel changes r0 alone, and r7 is put back.
    unsafe {
        core::arch::asm!(
            "mov {saved}, r7",
            "mov r7, {number}",
            "svc 0",
            "mov r7, {saved}",
            number = in(reg) number,
            saved = out(reg) _,
            inlateout("r0") args[0] => result,
            in("r1") args[1], in("r2") args[2], in("r3") args[3], in("r4") args[4],
            options(nostack),
        );
    }
    result
}
