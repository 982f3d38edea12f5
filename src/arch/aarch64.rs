//! `aarch64`, LP64 (ILP32 goes through `absent.rs`).
//!
//! Names and version: arch/arm64/kernel/vdso/vdso.lds.S. There is no time and no getcpu in mainline;
//! Android kernels with the vdso32 patches also export `__kernel_time`.
//! Numbers: include/uapi/asm-generic/unistd.h.

use super::abi::{Abi, Candidate, Discovery, ELFCLASS64, Function, Shape, call};

/// The table of `aarch64`.
pub(crate) static ABI: Abi = Abi {
    name: "aarch64",
    machine: 183, // EM_AARCH64
    class: ELFCLASS64,
    version: "LINUX_2.6.39",
    time: Function {
        candidates: &[
            symbol("__kernel_time", Shape::Time64),
            symbol("__kernel_clock_gettime", Shape::Timespec64),
        ],
        syscalls: &[call(113, Shape::Timespec64), call(169, Shape::Timeval64)],
    },
    gettimeofday: Function {
        candidates: &[symbol("__kernel_gettimeofday", Shape::Timeval64)],
        syscalls: &[call(169, Shape::Timeval64), call(113, Shape::Timespec64)],
    },
    clock_gettime: Function {
        candidates: &[symbol("__kernel_clock_gettime", Shape::Timespec64)],
        syscalls: &[call(113, Shape::Timespec64)],
    },
    clock_getres: Function {
        candidates: &[symbol("__kernel_clock_getres", Shape::Timespec64)],
        syscalls: &[call(114, Shape::Timespec64)],
    },
    getcpu: Function { candidates: &[], syscalls: &[call(168, Shape::Getcpu)] },
    discovery: Discovery { prctl: 167, openat: 56, read: 63, close: 57, rt_sigprocmask: 135 },
};

const fn symbol(name: &'static str, shape: Shape) -> Candidate {
    Candidate { name, shape, unless: None }
}

/// Enters the kernel.
///
/// # Safety
/// The number and the arguments must make a call that keeps Rust's rules.
///
/// It is a call, for a system call may clear what a function call may: the SVE registers, beyond the 128 bits that they share
/// with SIMD (Documentation/arch/arm64/sve.rst).
#[cfg(all(target_arch = "aarch64", not(vdso_time_absent)))]
#[inline(never)]
pub(crate) unsafe fn syscall(number: u32, args: [usize; 5]) -> isize {
    let result;
    // SAFETY: the caller vouches for the call; the kernel changes x0 and, as a function may, the SVE registers.
    unsafe {
        core::arch::asm!(
            "svc 0",
            in("x8") number as usize,
            inlateout("x0") args[0] => result,
            in("x1") args[1], in("x2") args[2], in("x3") args[3], in("x4") args[4],
            options(nostack),
        );
    }
    result
}
