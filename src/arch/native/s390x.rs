//! The system call of `s390x`.

use core::arch::asm;

pub(crate) use crate::arch::table::s390x::ABI;

/// Enters the kernel. A result in `-4095..=-1` is a negated error number.
///
/// # Safety
///
/// The system call must be sound with these arguments.
#[inline]
pub(crate) unsafe fn syscall(number: u32, args: [usize; 5]) -> isize {
    let result;
    // SAFETY: the caller promises that the call is sound. Every register that the kernel changes
    // is an output.
    unsafe {
        asm!(
            "svc 0",
            in("r1") number as usize,
            inlateout("r2") args[0] => result,
            in("r3") args[1], in("r4") args[2], in("r5") args[3], in("r6") args[4],
            options(nostack),
        );
    }
    result
}
