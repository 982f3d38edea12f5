//! The system call of `riscv64`.

use core::arch::asm;

pub(crate) use crate::arch::table::riscv64::ABI;

/// Enters the kernel. A result in `-4095..=-1` is a negated error number.
///
/// # Safety
///
/// The system call must be sound with these arguments.
//
// It is not inlined. A system call clears the vector registers
// (Documentation/arch/riscv/vector.rst), as a function call may.
#[inline(never)]
pub(crate) unsafe fn syscall(number: u32, args: [usize; 5]) -> isize {
    let result;
    // SAFETY: the caller promises that the call is sound. Every register that the kernel changes
    // is an output, or one that the callers of a function do not rely on.
    unsafe {
        asm!(
            "ecall",
            in("a7") number as usize,
            inlateout("a0") args[0] => result,
            in("a1") args[1], in("a2") args[2], in("a3") args[3], in("a4") args[4],
            options(nostack),
        );
    }
    result
}
