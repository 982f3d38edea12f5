//! `aarch64`, LP64 (ILP32 goes through libc).
//!
//! Names and version: arch/arm64/kernel/vdso/vdso.lds.S. There is no time and no getcpu in mainline;
//! Android kernels with the vdso32 patches also export `__kernel_time`.
//! Numbers: include/uapi/asm-generic/unistd.h.

use super::abi::{Abi, Discovery, ELFCLASS64, Function, Shape, call, symbol};

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
        time32_syscalls: &[],
    },
    gettimeofday: Function {
        candidates: &[symbol("__kernel_gettimeofday", Shape::Timeval64)],
        syscalls: &[call(169, Shape::Timeval64), call(113, Shape::Timespec64)],
        time32_syscalls: &[],
    },
    clock_gettime: Function {
        candidates: &[symbol("__kernel_clock_gettime", Shape::Timespec64)],
        syscalls: &[call(113, Shape::Timespec64)],
        time32_syscalls: &[],
    },
    clock_getres: Function {
        candidates: &[symbol("__kernel_clock_getres", Shape::Timespec64)],
        syscalls: &[call(114, Shape::Timespec64)],
        time32_syscalls: &[],
    },
    getcpu: Function { candidates: &[], syscalls: &[call(168, Shape::Getcpu)], time32_syscalls: &[] },
    clock_sources: &["arch_sys_counter"], // drivers/clocksource/arm_arch_timer.c
    discovery: Discovery { prctl: 167, openat: 56, read: 63, close: 57, rt_sigprocmask: 135 },
};

/// Enters the kernel.
///
/// # Safety
/// The number and the arguments must make a call that keeps Rust's rules.
///
/// It is a call, for a system call may clear what a function call may: the SVE registers, beyond the 128 bits that they share
/// with SIMD (Documentation/arch/arm64/sve.rst).
#[cfg(all(target_arch = "aarch64", not(vdso_time_libc_fallback)))]
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

/// The virtual count of the generic timer (Arm Architecture Reference Manual, D12.2). Linux lets every program read it; where a CPU
/// reads it wrongly, the kernel reads it in the program's place.
#[cfg(all(feature = "counter", target_arch = "aarch64", not(vdso_time_libc_fallback)))]
pub(crate) mod counter {
    pub(crate) const IS_READABLE: bool = true;

    /// The counter, read as early as the CPU likes, but after the read before.
    #[inline]
    pub(crate) fn ticks() -> u64 {
        let ticks;
        // SAFETY: mrs writes the register, and reads nothing of the program's.
        unsafe {
            core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags));
        }
        ticks
    }

    /// The counter, read when everything before has been done.
    #[inline]
    pub(crate) fn ticks_ordered() -> u64 {
        let ticks;
        // SAFETY: as in `ticks`; that it may touch memory keeps the compiler from moving what is before.
        unsafe {
            core::arch::asm!("isb", "mrs {}, cntvct_el0", out(reg) ticks, options(nostack, preserves_flags));
        }
        ticks
    }

    /// It always is: that is what a system counter is.
    pub(crate) fn is_invariant() -> bool {
        true
    }

    /// `CNTFRQ`, as the firmware set it.
    pub(crate) fn stated_frequency() -> Option<u64> {
        let hertz: u64;
        // SAFETY: as in `ticks`.
        unsafe {
            core::arch::asm!("mrs {}, cntfrq_el0", out(reg) hertz, options(nomem, nostack, preserves_flags));
        }
        (hertz != 0).then_some(hertz)
    }
}
