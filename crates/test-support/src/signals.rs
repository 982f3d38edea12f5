//! Signal handlers.

use std::ffi::{c_int, c_void};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

pub type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// Sets the handler of a signal, which must do only what is good in one.
pub fn handle(signal: Signal, flags: SaFlags, handler: Handler) {
    let action = SigAction::new(SigHandler::SigAction(handler), flags, SigSet::empty());
    // SAFETY: the handler is async-signal-safe, as the caller says.
    unsafe { sigaction(signal, &action) }.expect("sigaction");
}

/// Lets the signal end the process: std's handler of SIGSEGV would take a lock.
pub fn default(signal: Signal) {
    let action = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    // SAFETY: no handler is set.
    unsafe { sigaction(signal, &action) }.expect("sigaction");
}

/// Makes a trapped system call answer this.
///
/// # Safety
/// `context` must be the handler's third argument, and the handler must not have returned.
pub unsafe fn answer(context: *mut c_void, answer: c_int) {
    // SAFETY: the kernel made the context for the handler, which has not returned, as the caller
    // says.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext };
    #[cfg(target_arch = "x86_64")]
    let result = &mut registers.gregs[libc::REG_RAX as usize];
    #[cfg(target_arch = "x86")]
    let result = &mut registers.gregs[libc::REG_EAX as usize];
    #[cfg(target_arch = "aarch64")]
    let result = &mut registers.regs[0];
    #[cfg(target_arch = "arm")]
    let result = &mut registers.arm_r0;
    #[cfg(target_arch = "riscv64")]
    let result = &mut registers.__gregs[libc::REG_A0];
    #[cfg(target_arch = "loongarch64")]
    let result = &mut registers.__gregs[4];
    #[cfg(target_arch = "s390x")]
    let result = &mut registers.gregs[2];
    #[cfg(target_arch = "powerpc64")]
    let result = &mut registers.gp_regs[3];
    *result = answer as isize as _;
}
