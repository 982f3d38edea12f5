//! The system call of `x86_64`.

use core::arch::asm;

pub(crate) use crate::arch::table::x86_64::ABI;

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
            "syscall",
            inlateout("rax") number as usize => result,
            in("rdi") args[0], in("rsi") args[1], in("rdx") args[2], in("r10") args[3], in("r8") args[4],
            lateout("rcx") _, lateout("r11") _, // arch/x86/entry/entry_64.S
            options(nostack),
        );
    }
    result
}
