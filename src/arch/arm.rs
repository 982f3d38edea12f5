//! `arm`, EABI, in ARM and in Thumb mode.
//!
//! - Names and version: arch/arm/vdso/vdso.lds.S, and arch/arm64/kernel/vdso32/vdso.lds.S for
//!   32-bit programs on arm64 kernels. `__vdso_clock_gettime64` and `__vdso_clock_getres` exist
//!   since 5.5, `__vdso_clock_getres_time64` since 7.0. Since 7.3, kernels without
//!   `CONFIG_COMPAT_32BIT_TIME` lack the 32-bit ones. Mainline has no time and no getcpu.
//! - Android kernels with the vdso32 patches export `__vdso_time`. It reads no timer, so it works
//!   even if the kernel blanked the names of the others.
//! - Numbers: arch/arm/tools/syscall.tbl. 403 and 406 exist since 5.1. The EABI has no time(2).
//! - Clock source: drivers/clocksource/arm_arch_timer.c.

use super::abi::Shape::{Getcpu, Time32, Timespec32, Timespec64, Timeval32};
use super::abi::{Abi, Candidate, Discovery, ELFCLASS32, Quirk, Shape, call, function, symbol};

/// The table of `arm`.
pub(crate) static ABI: Abi = Abi {
    name: "arm",
    machine: 40, // EM_ARM
    class: ELFCLASS32,
    version: "LINUX_2.6",
    time: function(
        &[
            timer("__vdso_clock_gettime64", Timespec64),
            timer("__vdso_clock_gettime", Timespec32),
            symbol("__vdso_time", Time32),
        ],
        &[call(403, Timespec64)],
    )
    .or_time32(&[call(263, Timespec32), call(78, Timeval32)]),
    gettimeofday: function(
        &[timer("__vdso_clock_gettime64", Timespec64), timer("__vdso_gettimeofday", Timeval32)],
        &[call(403, Timespec64)],
    )
    .or_time32(&[call(78, Timeval32)]),
    clock_gettime: function(
        &[timer("__vdso_clock_gettime64", Timespec64), timer("__vdso_clock_gettime", Timespec32)],
        &[call(403, Timespec64)],
    )
    .or_time32(&[call(263, Timespec32)]),
    clock_getres: function(
        &[timer("__vdso_clock_getres_time64", Timespec64), timer("__vdso_clock_getres", Timespec32)],
        &[call(406, Timespec64)],
    )
    .or_time32(&[call(264, Timespec32)]),
    getcpu: function(&[], &[call(345, Getcpu)]),
    discovery: Discovery { prctl: 172, openat: 322, read: 3, close: 6, rt_sigprocmask: 175 },
};

/// A symbol that needs the timer.
const fn timer(name: &'static str, shape: Shape) -> Candidate {
    symbol(name, shape).unless(Quirk::BlankedNames)
}

// The number goes in r7. That is the frame pointer in Thumb mode, where it cannot be an operand, so
// the code restores it.
#[cfg(all(target_arch = "arm", not(vdso_time_libc_fallback)))]
super::assembly::syscall! {
    #[inline]
    |number, args, result|
    "mov {saved}, r7",
    "mov r7, {number}",
    "svc 0",
    "mov r7, {saved}",
    number = in(reg) number,
    saved = out(reg) _,
    inlateout("r0") args[0] => result,
    in("r1") args[1], in("r2") args[2], in("r3") args[3], in("r4") args[4],
}

/// glibc's rseq area, relative to the thread pointer in `TPIDRURO`.
#[cfg(all(target_arch = "arm", not(vdso_time_libc_fallback)))]
pub(crate) mod rseq {
    use core::arch::asm;

    /// `HWCAP_TLS`: the CPU has the register (arch/arm/include/uapi/asm/hwcap.h).
    pub(crate) const NEEDED_HWCAP: Option<usize> = Some(1 << 15);

    /// Returns the addresses of `__rseq_offset` and `__rseq_size`, null in a program without them.
    pub(crate) fn symbols() -> (*const isize, *const u32) {
        let (offset, size);
        // SAFETY: it loads two addresses from the global offset table, which it finds by two words
        // among the instructions. A weak symbol that is not defined has address 0.
        unsafe {
            asm!(
                ".weak __rseq_offset",
                ".weak __rseq_size",
                "b 4f",
                ".p2align 2",
                "2: .long __rseq_offset(GOT_PREL)",
                "3: .long __rseq_size(GOT_PREL)",
                ".p2align 2",
                "4: adr {address}, 2b",
                "ldr {offset}, [{address}]",
                "ldr {offset}, [{offset}, {address}]",
                "ldr {size}, [{address}, #4]",
                "add {address}, {address}, #4",
                "ldr {size}, [{size}, {address}]",
                address = out(reg) _, offset = out(reg) offset, size = out(reg) size,
                options(pure, nomem, nostack),
            );
        }
        (offset, size)
    }

    /// Reads 4 bytes.
    ///
    /// # Safety
    ///
    /// They must be readable in every thread, and the CPU must have `NEEDED_HWCAP`.
    #[inline]
    pub(crate) unsafe fn read(offset: isize) -> u32 {
        let pointer: usize;
        // SAFETY: mrc only writes its output. The caller checked `NEEDED_HWCAP`.
        unsafe {
            asm!(
                ".inst 0xee1d0f70", // mrc p15, 0, r0, c13, c0, 3
                out("r0") pointer,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        let address = core::ptr::with_exposed_provenance::<u32>(pointer.wrapping_add_signed(offset));
        // SAFETY: the caller promises that the bytes are readable.
        unsafe { address.read_volatile() }
    }
}
