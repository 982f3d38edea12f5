//! The system call of `arm`.

use core::arch::asm;

pub(crate) use crate::arch::table::arm::ABI;

/// Enters the kernel. A result in `-4095..=-1` is a negated error number.
///
/// # Safety
///
/// The system call must be sound with these arguments.
//
// The number goes in r7. That is the frame pointer in Thumb mode, where it cannot be an operand, so
// the code restores it.
#[inline]
pub(crate) unsafe fn syscall(number: u32, args: [usize; 5]) -> isize {
    let result;
    // SAFETY: the caller promises that the call is sound. Every register that the kernel changes
    // is an output.
    unsafe {
        asm!(
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
