//! `arm`, EABI, in ARM and in Thumb mode.
//!
//! Names and version: arch/arm/vdso/vdso.lds.S and, for 32-bit programs on arm64 kernels,
//! arch/arm64/kernel/vdso32/vdso.lds.S; `__vdso_clock_gettime64` and `__vdso_clock_getres` came with 5.5,
//! `__vdso_clock_getres_time64` with 7.0, and from 7.3 a kernel without `CONFIG_COMPAT_32BIT_TIME` has no
//! 32-bit one. There is no time and no getcpu in mainline; Android kernels with the vdso32 patches export
//! `__vdso_time`, which reads no timer and so stays good where the names of the others are blank.
//! Numbers: arch/arm/tools/syscall.tbl; 403 and 406 came with 5.1, and time(2) is not part of the EABI.

use super::abi::{Abi, Candidate, Discovery, ELFCLASS32, Function, Quirk, Shape, call, symbol};

/// The table of `arm`.
pub(crate) static ABI: Abi = Abi {
    name: "arm",
    machine: 40, // EM_ARM
    class: ELFCLASS32,
    version: "LINUX_2.6",
    time: Function {
        candidates: &[
            timer("__vdso_clock_gettime64", Shape::Timespec64),
            timer("__vdso_clock_gettime", Shape::Timespec32),
            symbol("__vdso_time", Shape::Time32),
        ],
        syscalls: &[call(403, Shape::Timespec64)],
        time32_syscalls: &[call(263, Shape::Timespec32), call(78, Shape::Timeval32)],
    },
    gettimeofday: Function {
        candidates: &[
            timer("__vdso_clock_gettime64", Shape::Timespec64),
            timer("__vdso_gettimeofday", Shape::Timeval32),
        ],
        syscalls: &[call(403, Shape::Timespec64)],
        time32_syscalls: &[call(78, Shape::Timeval32)],
    },
    clock_gettime: Function {
        candidates: &[
            timer("__vdso_clock_gettime64", Shape::Timespec64),
            timer("__vdso_clock_gettime", Shape::Timespec32),
        ],
        syscalls: &[call(403, Shape::Timespec64)],
        time32_syscalls: &[call(263, Shape::Timespec32)],
    },
    clock_getres: Function {
        candidates: &[
            timer("__vdso_clock_getres_time64", Shape::Timespec64),
            timer("__vdso_clock_getres", Shape::Timespec32),
        ],
        syscalls: &[call(406, Shape::Timespec64)],
        time32_syscalls: &[call(264, Shape::Timespec32)],
    },
    getcpu: Function { candidates: &[], syscalls: &[call(345, Shape::Getcpu)], time32_syscalls: &[] },
    clock_sources: &["arch_sys_counter"], // drivers/clocksource/arm_arch_timer.c
    discovery: Discovery { prctl: 172, openat: 322, read: 3, close: 6, rt_sigprocmask: 175 },
};

/// A symbol that needs the timer.
const fn timer(name: &'static str, shape: Shape) -> Candidate {
    symbol(name, shape).unless(Quirk::BlankedNames)
}

/// Enters the kernel.
///
/// # Safety
/// The number and the arguments must make a call that keeps Rust's rules.
#[cfg(all(target_arch = "arm", not(vdso_time_libc_fallback)))]
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

/// The virtual count of the generic timer (Arm Architecture Reference Manual, G6.2). The kernel lets programs read it where its
/// vDSO does, and nowhere else.
///
/// The instructions are written as words. The assembler accepts some of the mnemonics for ARMv7
/// only, and the directive that makes it accept them marks the whole object as made for ARMv7. A
/// linker then puts instructions of ARMv7 into programs for older CPUs. A word fixes its registers.
/// The words of coprocessor instructions are the same in ARM and Thumb mode.
#[cfg(all(feature = "counter", target_arch = "arm", not(vdso_time_libc_fallback)))]
pub(crate) mod counter {
    use core::arch::asm;

    pub(crate) const IS_READABLE: bool = false;

    /// The counter, read as early as the CPU likes, but after the read before.
    #[inline]
    pub(crate) fn ticks() -> u64 {
        let (low, high): (u32, u32);
        // SAFETY: mrrc writes two registers, and reads nothing of the program's.
        unsafe {
            asm!(
                ".inst 0xec510f1e", // mrrc p15, 1, r0, r1, c14
                out("r0") low, out("r1") high,
                options(nomem, nostack, preserves_flags),
            );
        }
        (u64::from(high) << 32) | u64::from(low)
    }

    /// The counter, read when everything before has been done.
    #[inline]
    pub(crate) fn ticks_ordered() -> u64 {
        if is_thumb() {
            // SAFETY: isb changes nothing of the program's. The compiler moves nothing past it, for
            // it may touch memory.
            unsafe { asm!(".inst 0xf3bf8f6f", options(nostack, preserves_flags)) }; // isb sy, in Thumb mode
        } else {
            // SAFETY: the same.
            unsafe { asm!(".inst 0xf57ff06f", options(nostack, preserves_flags)) }; // isb sy, in ARM mode
        }
        let (low, high): (u32, u32);
        // SAFETY: as in `ticks`; that it may touch memory keeps it behind the barrier.
        unsafe {
            asm!(
                ".inst 0xec510f1e", // mrrc p15, 1, r0, r1, c14
                out("r0") low, out("r1") high,
                options(nostack, preserves_flags),
            );
        }
        (u64::from(high) << 32) | u64::from(low)
    }

    /// Whether this is Thumb code, where a `mov` has 2 bytes and not 4. Stable Rust has no `cfg`
    /// for that.
    #[inline]
    fn is_thumb() -> bool {
        let (first, second): (u32, u32);
        // SAFETY: mov copies the program counter.
        unsafe {
            asm!(
                "mov {}, pc",
                "mov {}, pc",
                out(reg) first, out(reg) second,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        second.wrapping_sub(first) == 2
    }

    /// It always is: that is what a system counter is.
    pub(crate) fn is_invariant() -> bool {
        true
    }

    /// `CNTFRQ`, as the firmware set it.
    pub(crate) fn stated_frequency() -> Option<u64> {
        let hertz: u32;
        // SAFETY: mrc writes a register, and reads nothing of the program's.
        unsafe {
            asm!(
                ".inst 0xee1e0f10", // mrc p15, 0, r0, c14, c0, 0
                out("r0") hertz,
                options(nomem, nostack, preserves_flags),
            );
        }
        (hertz != 0).then_some(hertz.into())
    }
}
