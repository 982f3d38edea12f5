//! The system call of `loongarch64`.

use core::arch::asm;

pub(crate) use crate::arch::table::loongarch64::ABI;

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
            "syscall 0",
            in("$a7") number as usize,
            inlateout("$a0") args[0] => result,
            in("$a1") args[1], in("$a2") args[2], in("$a3") args[3], in("$a4") args[4],
            // arch/loongarch/kernel/entry.S
            lateout("$t0") _, lateout("$t1") _, lateout("$t2") _, lateout("$t3") _, lateout("$t4") _,
            lateout("$t5") _, lateout("$t6") _, lateout("$t7") _, lateout("$t8") _,
            options(nostack),
        );
    }
    result
}
