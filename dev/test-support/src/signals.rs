//! Signal handlers.

use std::ffi::{c_int, c_void};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

pub type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// Sets the handler of a signal. It must be async-signal-safe.
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
