//! The system call of `aarch64`.

use core::arch::asm;

pub(crate) use crate::arch::table::aarch64::ABI;

/// Enters the kernel. A result in `-4095..=-1` is a negated error number.
///
/// # Safety
///
/// The system call must be sound with these arguments.
//
// It is not inlined. A system call may clear the SVE registers beyond the 128 bits that they share
// with SIMD (Documentation/arch/arm64/sve.rst), as a function call may.
#[inline(never)]
pub(crate) unsafe fn syscall(number: u32, args: [usize; 5]) -> isize {
    let result;
    // SAFETY: the caller promises that the call is sound. Every register that the kernel changes
    // is an output, or one that the callers of a function do not rely on.
    unsafe {
        asm!(
            "svc 0",
            in("x8") number as usize,
            inlateout("x0") args[0] => result,
            in("x1") args[1], in("x2") args[2], in("x3") args[3], in("x4") args[4],
            options(nostack),
        );
    }
    result
}
