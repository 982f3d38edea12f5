//! `x86_64`, LP64 (x32 has its own system calls and goes through libc).
//!
//! Names and version: arch/x86/entry/vdso/vdso.lds.S (`vdso64/vdso64.lds.S` since 7.0).
//! Numbers: arch/x86/entry/syscalls/syscall_64.tbl.

use super::abi::{Abi, Discovery, ELFCLASS64, Function, Quirk, Shape, call, symbol};

/// The table of `x86_64`.
pub(crate) static ABI: Abi = Abi {
    name: "x86_64",
    machine: 62, // EM_X86_64
    class: ELFCLASS64,
    version: "LINUX_2.6",
    time: Function {
        candidates: &[
            symbol("__vdso_time", Shape::Time64),
            symbol("__vdso_clock_gettime", Shape::Timespec64),
        ],
        syscalls: &[call(228, Shape::Timespec64), call(96, Shape::Timeval64)],
        time32_syscalls: &[],
    },
    gettimeofday: Function {
        candidates: &[symbol("__vdso_gettimeofday", Shape::Timeval64)],
        syscalls: &[call(96, Shape::Timeval64), call(228, Shape::Timespec64)],
        time32_syscalls: &[],
    },
    clock_gettime: Function {
        candidates: &[symbol("__vdso_clock_gettime", Shape::Timespec64)],
        syscalls: &[call(228, Shape::Timespec64)],
        time32_syscalls: &[],
    },
    clock_getres: Function {
        candidates: &[symbol("__vdso_clock_getres", Shape::Timespec64)],
        syscalls: &[call(229, Shape::Timespec64)],
        time32_syscalls: &[],
    },
    getcpu: Function {
        // QEMU's own image, which its loader relocates, has a getcpu that says CPU 0, node 0 (seen in 10.0).
        candidates: &[symbol("__vdso_getcpu", Shape::Getcpu).unless(Quirk::Relocated)],
        syscalls: &[call(309, Shape::Getcpu)],
        time32_syscalls: &[],
    },
    clock_sources: &["tsc", "tsc-early"], // arch/x86/kernel/tsc.c
    discovery: Discovery { prctl: 157, openat: 257, read: 0, close: 3, rt_sigprocmask: 14 },
};

#[cfg(all(feature = "counter", target_arch = "x86_64", not(vdso_time_libc_fallback)))]
pub(crate) use super::tsc as counter;

/// Enters the kernel.
///
/// # Safety
/// The number and the arguments must make a call that keeps Rust's rules.
#[cfg(all(target_arch = "x86_64", not(vdso_time_libc_fallback)))]
#[inline]
pub(crate) unsafe fn syscall(number: u32, args: [usize; 5]) -> isize {
    let result;
    // SAFETY: the caller vouches for the call; the kernel changes rax, rcx and r11 alone.
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") number as usize => result,
            in("rdi") args[0], in("rsi") args[1], in("rdx") args[2], in("r10") args[3], in("r8") args[4],
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    result
}
