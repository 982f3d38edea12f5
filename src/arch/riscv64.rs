//! `riscv64`.
//!
//! - Names and version: arch/riscv/kernel/vdso/vdso.lds.S. There is no time. `__vdso_getcpu` makes
//!   the system call (arch/riscv/kernel/vdso/getcpu.S), as all functions did before 5.7.
//! - Numbers: include/uapi/asm-generic/unistd.h.
//! - Clock source: drivers/clocksource/timer-riscv.c.

use super::abi::Shape::{Getcpu, Timespec64, Timeval64};
use super::abi::{Abi, Discovery, ELFCLASS64, call, function, symbol};

/// The table of `riscv64`.
pub(crate) static ABI: Abi = Abi {
    name: "riscv64",
    machine: 243, // EM_RISCV
    class: ELFCLASS64,
    version: "LINUX_4.15",
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
    clock_sources: &["riscv_clocksource"],
    discovery: Discovery { prctl: 167, openat: 56, read: 63, close: 57, rt_sigprocmask: 135 },
};

/// Enters the kernel.
///
/// It is not inlined. A system call clears the vector registers
/// (Documentation/arch/riscv/vector.rst), as a function call may.
///
/// # Safety
///
/// The system call must be sound with these arguments.
#[cfg(all(target_arch = "riscv64", not(vdso_time_libc_fallback)))]
#[inline(never)]
pub(crate) unsafe fn syscall(number: u32, args: [usize; 5]) -> isize {
    let result;
    // SAFETY: the caller promises that the call is sound. The kernel changes only a0, an output,
    // and the vector registers, which the callers of a function do not rely on.
    unsafe {
        core::arch::asm!(
            "ecall",
            in("a7") number as usize,
            inlateout("a0") args[0] => result,
            in("a1") args[1], in("a2") args[2], in("a3") args[3], in("a4") args[4],
            options(nostack),
        );
    }
    result
}

/// The `time` CSR (The RISC-V Instruction Set Manual, volume I, "Zicntr").
///
/// Linux lets every program read it (drivers/perf/riscv_pmu_sbi.c, `CSR_SCOUNTEREN`).
#[cfg(all(feature = "counter", target_arch = "riscv64", not(vdso_time_libc_fallback)))]
pub(crate) mod counter {
    use core::arch::asm;

    pub(crate) const IS_READABLE: bool = true;
    pub(crate) const IS_PER_CPU: bool = false;

    /// Reads the counter. The CPU may read it before earlier instructions have completed.
    #[inline]
    pub(crate) fn ticks() -> u64 {
        let ticks;
        // SAFETY: rdtime only writes its output, and Linux permits it in user mode.
        unsafe { asm!("rdtime {}", out(reg) ticks, options(nomem, nostack, preserves_flags)) };
        ticks
    }

    /// Reads the counter after all earlier memory accesses. A fence orders the read of a CSR as
    /// device input (the same manual, "Zicsr", CSR access ordering).
    #[inline]
    pub(crate) fn ticks_ordered() -> u64 {
        let ticks;
        // SAFETY: fence and rdtime only write the output. Without `nomem`, the compiler does not
        // move memory accesses across the read.
        unsafe { asm!("fence iorw, i", "rdtime {}", out(reg) ticks, options(nostack, preserves_flags)) };
        ticks
    }

    /// Returns `true`: the manual requires a constant rate, and one time for all harts.
    pub(crate) fn is_invariant() -> bool {
        true
    }

    /// Returns `None`: the rate is in the device tree (`timebase-frequency`).
    pub(crate) fn stated_frequency() -> Option<u64> {
        None
    }
}

/// glibc's rseq area, relative to the thread pointer in tp.
#[cfg(all(target_arch = "riscv64", not(vdso_time_libc_fallback)))]
pub(crate) mod rseq {
    use core::arch::asm;

    pub(crate) const NEEDED_HWCAP: Option<usize> = None;

    super::super::abi::rseq_symbols! {
        "2: auipc {offset}, %got_pcrel_hi(__rseq_offset)",
        "ld {offset}, %pcrel_lo(2b)({offset})",
        "3: auipc {size}, %got_pcrel_hi(__rseq_size)",
        "ld {size}, %pcrel_lo(3b)({size})"
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
                "add {value}, tp, {offset}",
                "lw {value}, 0({value})",
                value = out(reg) value, offset = in(reg) offset,
                options(readonly, nostack, preserves_flags),
            );
        }
        value
    }
}
