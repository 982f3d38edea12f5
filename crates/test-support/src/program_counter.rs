//! The program counter that a signal interrupted.

#[cfg(target_arch = "x86_64")]
pub fn program_counter(context: &libc::ucontext_t) -> usize {
    context.uc_mcontext.gregs[libc::REG_RIP as usize] as usize
}

#[cfg(all(target_arch = "x86", any(target_env = "gnu", target_os = "android")))]
pub fn program_counter(context: &libc::ucontext_t) -> usize {
    context.uc_mcontext.gregs[libc::REG_EIP as usize] as usize
}

#[cfg(target_arch = "aarch64")]
pub fn program_counter(context: &libc::ucontext_t) -> usize {
    context.uc_mcontext.pc as usize
}

#[cfg(target_arch = "arm")]
pub fn program_counter(context: &libc::ucontext_t) -> usize {
    context.uc_mcontext.arm_pc as usize
}

/// libc has no names for the registers here: no sample will lie in the vDSO.
#[cfg(not(any(
    target_arch = "x86_64",
    all(target_arch = "x86", any(target_env = "gnu", target_os = "android")),
    target_arch = "aarch64",
    target_arch = "arm",
)))]
pub fn program_counter(_: &libc::ucontext_t) -> usize {
    0
}
