//! What a signal's handler makes a trapped system call answer.

#![allow(unsafe_code, reason = "the context of a signal is written to")]

use std::ffi::{c_int, c_void};

/// Writes the answer where the system call's would be.
///
/// # Safety
/// `context` must be what the kernel gave the handler.
pub unsafe fn answer(context: *mut c_void, answer: c_int) {
    // SAFETY: the caller's duty.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext };
    #[cfg(target_arch = "x86_64")]
    let place = &mut registers.gregs[libc::REG_RAX as usize];
    #[cfg(target_arch = "x86")]
    let place = &mut registers.gregs[libc::REG_EAX as usize];
    #[cfg(target_arch = "aarch64")]
    let place = &mut registers.regs[0];
    #[cfg(target_arch = "arm")]
    let place = &mut registers.arm_r0;
    *place = answer as isize as _;
}

/// The second argument of the system call.
///
/// # Safety
/// `context` must be what the kernel gave the handler.
#[allow(dead_code, reason = "not every test needs an argument")]
pub unsafe fn second_argument(context: *mut c_void) -> usize {
    // SAFETY: the caller's duty.
    let registers = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext };
    #[cfg(target_arch = "x86_64")]
    let argument = registers.gregs[libc::REG_RSI as usize];
    #[cfg(target_arch = "x86")]
    let argument = registers.gregs[libc::REG_ECX as usize];
    #[cfg(target_arch = "aarch64")]
    let argument = registers.regs[1];
    #[cfg(target_arch = "arm")]
    let argument = registers.arm_r1;
    argument as usize
}
