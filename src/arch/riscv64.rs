//! `riscv64`.
//!
//! - Names and version: arch/riscv/kernel/vdso/vdso.lds.S. There is no time. `__vdso_getcpu` makes
//!   the system call (arch/riscv/kernel/vdso/getcpu.S), as all functions did before 5.7.
//! - Numbers: include/uapi/asm-generic/unistd.h.
//! - Clock source: drivers/clocksource/timer-riscv.c.

use super::abi::Shape::{Getcpu, Timespec64, Timeval64};
use super::abi::{
    Abi, Discovery, ELFCLASS64, VDSO_GETRES, VDSO_GETTIME, VDSO_GETTIMEOFDAY, call, function, symbol,
};

/// The table of `riscv64`.
pub(crate) static ABI: Abi = Abi {
    name: "riscv64",
    machine: 243, // EM_RISCV
    class: ELFCLASS64,
    version: "LINUX_4.15",
    time: function(VDSO_GETTIME, &[call(113, Timespec64), call(169, Timeval64)]),
    gettimeofday: function(VDSO_GETTIMEOFDAY, &[call(169, Timeval64), call(113, Timespec64)]),
    clock_gettime: function(VDSO_GETTIME, &[call(113, Timespec64)]),
    clock_getres: function(VDSO_GETRES, &[call(114, Timespec64)]),
    getcpu: function(&[symbol("__vdso_getcpu", Getcpu)], &[call(168, Getcpu)]),
    discovery: Discovery { prctl: 167, openat: 56, read: 63, close: 57, rt_sigprocmask: 135 },
};

// It is not inlined. A system call clears the vector registers
// (Documentation/arch/riscv/vector.rst), as a function call may.
#[cfg(all(target_arch = "riscv64", not(vdso_time_libc_fallback)))]
super::assembly::syscall! {
    #[inline(never)]
    |number, args, result|
    "ecall",
    in("a7") number as usize,
    inlateout("a0") args[0] => result,
    in("a1") args[1], in("a2") args[2], in("a3") args[3], in("a4") args[4],
}


#[cfg(all(target_arch = "riscv64", not(vdso_time_libc_fallback)))]
super::assembly::rseq! {
    symbols(nostack, preserves_flags):
        "2: auipc {offset}, %got_pcrel_hi(__rseq_offset)",
        "ld {offset}, %pcrel_lo(2b)({offset})",
        "3: auipc {size}, %got_pcrel_hi(__rseq_size)",
        "ld {size}, %pcrel_lo(3b)({size})";
    read(reg):
        "add {value}, tp, {offset}",
        "lw {value}, 0({value})"
}
