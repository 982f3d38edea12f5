//! Signal handlers, and the registers that a signal interrupted.

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

/// A register, by its use.
#[derive(Clone, Copy)]
pub enum Register {
    ProgramCounter,
    /// What a system call returns.
    Answer,
    /// A system call's second argument.
    SecondArgument,
}

#[cfg(target_arch = "x86_64")]
pub type Word = i64;
#[cfg(target_arch = "x86")]
pub type Word = i32;
#[cfg(target_arch = "aarch64")]
pub type Word = u64;
#[cfg(target_arch = "arm")]
pub type Word = u32;

/// A register of the context that the kernel gives a handler.
///
/// # Safety
/// `context` must be the handler's third argument, and the handler must not have returned.
pub unsafe fn register<'a>(context: *mut c_void, register: Register) -> &'a mut Word {
    use Register::{Answer, ProgramCounter, SecondArgument};
    // SAFETY: the kernel made the context for the handler, which has not returned, as the caller
    // says.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext };
    #[cfg(target_arch = "x86_64")]
    let place = &mut registers.gregs[match register {
        ProgramCounter => libc::REG_RIP,
        Answer => libc::REG_RAX,
        SecondArgument => libc::REG_RSI,
    } as usize];
    #[cfg(target_arch = "x86")]
    let place = &mut registers.gregs[match register {
        ProgramCounter => libc::REG_EIP,
        Answer => libc::REG_EAX,
        SecondArgument => libc::REG_ECX,
    } as usize];
    #[cfg(target_arch = "aarch64")]
    let place = match register {
        ProgramCounter => &mut registers.pc,
        Answer => &mut registers.regs[0],
        SecondArgument => &mut registers.regs[1],
    };
    #[cfg(target_arch = "arm")]
    let place = match register {
        ProgramCounter => &mut registers.arm_pc,
        Answer => &mut registers.arm_r0,
        SecondArgument => &mut registers.arm_r1,
    };
    place
}

/// Where the signal interrupted the program.
///
/// # Safety
/// As for [`register`].
pub unsafe fn program_counter(context: *mut c_void) -> usize {
    // SAFETY: the context is the handler's, as the caller says.
    *unsafe { register(context, Register::ProgramCounter) } as usize
}

/// Makes a trapped system call answer this.
///
/// # Safety
/// As for [`register`].
pub unsafe fn answer(context: *mut c_void, answer: c_int) {
    // SAFETY: the context is the handler's, as the caller says.
    *unsafe { register(context, Register::Answer) } = answer as isize as Word;
}
