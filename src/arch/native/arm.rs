//! The system call of `arm`.

pub(crate) use crate::arch::table::arm::ABI;

unsafe extern "C" {
    /// Makes a system call.
    fn vdso_time_enter(number: u32, args: *const [usize; 5]) -> isize;
}

// The number of the system call goes in r7, which is also the frame pointer of Thumb code. The
// kernel delivers most signals right after the `svc`, and a signal handler that unwinds from there
// uses r7 to find the frame of a C caller. With inline assembly, r7 still held the number when the
// signal arrived, and such a handler crashed. So the system call is in a function of its own, whose
// unwind entry tells the unwinder where the caller's r7 was saved.
//
// The function is ARM code even in a Thumb program. These instructions could be assembled as Thumb
// code as well, but in a Thumb program some compilers do not mark the assembled function as Thumb
// code. `.arm` need not be undone at the end, because LLVM sets the mode again at the next function
// and, with LTO, at the next crate's assembly.
core::arch::global_asm!(
    ".ifndef vdso_time_enter",
    ".pushsection .text.vdso_time_enter,\"ax\",%progbits",
    ".p2align 2",
    ".arm",
    ".weak vdso_time_enter",
    ".hidden vdso_time_enter",
    ".type vdso_time_enter,%function",
    "vdso_time_enter:",
    ".fnstart",
    ".save {{r4, r5, r7, lr}}",
    "push {{r4, r5, r7, lr}}", // r5 keeps the stack aligned to 8 bytes
    "mov r7, r0",
    "ldm r1, {{r0, r1, r2, r3, r4}}",
    "svc #0",
    "pop {{r4, r5, r7, lr}}",
    "bx lr",
    ".fnend",
    ".size vdso_time_enter, . - vdso_time_enter",
    ".popsection",
    ".endif",
);

/// Enters the kernel. A result in `-4095..=-1` is a negated error number.
///
/// This function must not be inlined, because it calls `vdso_time_enter`, whose symbol is hidden
/// (see the module `native`).
///
/// # Safety
///
/// The system call must be sound with these arguments.
#[inline(never)]
pub(crate) unsafe fn syscall(number: u32, args: [usize; 5]) -> isize {
    // SAFETY: the caller promises that the call is sound.
    unsafe { vdso_time_enter(number, &raw const args) }
}
