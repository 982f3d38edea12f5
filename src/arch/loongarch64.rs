//! `loongarch64`.
//!
//! - Names and version: arch/loongarch/vdso/vdso.lds.S. There is no time.
//! - Numbers: include/uapi/asm-generic/unistd.h.
//! - Clock source: arch/loongarch/kernel/time.c.

use super::abi::Shape::{Getcpu, Timespec64, Timeval64};
use super::abi::{Abi, Discovery, ELFCLASS64, call, function, symbol};

/// The table of `loongarch64`.
pub(crate) static ABI: Abi = Abi {
    name: "loongarch64",
    machine: 258, // EM_LOONGARCH
    class: ELFCLASS64,
    version: "LINUX_5.10",
    time: function(
        &[symbol("__vdso_clock_gettime", Timespec64)],
        &[call(113, Timespec64), call(169, Timeval64)],
    ),
    gettimeofday: function(
        &[symbol("__vdso_gettimeofday", Timeval64)],
        &[call(169, Timeval64), call(113, Timespec64)],
    ),
    clock_gettime: function(&[symbol("__vdso_clock_gettime", Timespec64)], &[call(113, Timespec64)]),
    clock_getres: function(&[symbol("__vdso_clock_getres", Timespec64)], &[call(114, Timespec64)]),
    getcpu: function(&[symbol("__vdso_getcpu", Getcpu)], &[call(168, Getcpu)]),
    clock_sources: &["Constant"],
    discovery: Discovery { prctl: 167, openat: 56, read: 63, close: 57, rt_sigprocmask: 135 },
};

/// Enters the kernel.
///
/// # Safety
///
/// The system call must be sound with these arguments.
#[cfg(all(target_arch = "loongarch64", not(vdso_time_libc_fallback)))]
#[inline]
pub(crate) unsafe fn syscall(number: u32, args: [usize; 5]) -> isize {
    let result;
    // SAFETY: the caller promises that the call is sound. The kernel changes only a0 and t0 to t8
    // (arch/loongarch/kernel/entry.S), which are outputs.
    unsafe {
        core::arch::asm!(
            "syscall 0",
            in("$a7") number as usize,
            inlateout("$a0") args[0] => result,
            in("$a1") args[1], in("$a2") args[2], in("$a3") args[3], in("$a4") args[4],
            lateout("$t0") _, lateout("$t1") _, lateout("$t2") _, lateout("$t3") _, lateout("$t4") _,
            lateout("$t5") _, lateout("$t6") _, lateout("$t7") _, lateout("$t8") _,
            options(nostack),
        );
    }
    result
}

/// The stable counter (LoongArch Reference Manual, volume 1, 2.2.10.4). Every program may read it.
#[cfg(all(feature = "counter", target_arch = "loongarch64", not(vdso_time_libc_fallback)))]
pub(crate) mod counter {
    use core::arch::asm;

    pub(crate) const IS_READABLE: bool = true;
    pub(crate) const IS_PER_CPU: bool = false;

    /// Reads the counter. The CPU may read it before earlier instructions have completed.
    #[inline]
    pub(crate) fn ticks() -> u64 {
        let ticks;
        // SAFETY: rdtime.d only writes its outputs; the second one is the constant 0.
        unsafe { asm!("rdtime.d {}, $zero", out(reg) ticks, options(nomem, nostack, preserves_flags)) };
        ticks
    }

    /// Reads the counter after all earlier memory accesses. `dbar 0` waits for them, and `ibar 0`
    /// for `dbar 0`.
    #[inline]
    pub(crate) fn ticks_ordered() -> u64 {
        let ticks;
        // SAFETY: the barriers change nothing, and rdtime.d only writes its output. Without
        // `nomem`, the compiler does not move memory accesses across the read.
        unsafe {
            asm!("dbar 0", "ibar 0", "rdtime.d {}, $zero", out(reg) ticks, options(nostack, preserves_flags));
        }
        ticks
    }

    /// Returns `true`: the counter has a constant rate.
    pub(crate) fn is_invariant() -> bool {
        true
    }

    /// Returns `None`: the measured rate is used.
    pub(crate) fn stated_frequency() -> Option<u64> {
        None
    }
}

/// glibc's rseq area, relative to the thread pointer in $tp.
#[cfg(all(target_arch = "loongarch64", not(vdso_time_libc_fallback)))]
pub(crate) mod rseq {
    use core::arch::asm;

    pub(crate) const NEEDED_HWCAP: Option<usize> = None;

    super::super::abi::rseq_symbols! {
        "la.got {offset}, __rseq_offset",
        "la.got {size}, __rseq_size"
    }

    /// Reads 4 bytes.
    ///
    /// # Safety
    ///
    /// They must be readable in every thread.
    #[inline]
    pub(crate) unsafe fn read(offset: isize) -> u32 {
        let value;
        // SAFETY: the caller promises that the bytes are readable.
        unsafe {
            asm!(
                "ldx.w {value}, $tp, {offset}",
                value = out(reg) value, offset = in(reg) offset,
                options(readonly, nostack, preserves_flags),
            );
        }
        value
    }
}
