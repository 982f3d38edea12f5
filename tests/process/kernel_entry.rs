//! The promise: on i386 the crate makes a system call by the vDSO's entry once it has found the
//! vDSO, and by an instruction of its own before that. Elsewhere it always uses its own.
//!
//! A seccomp filter shows where each call comes from.

#![allow(unsafe_code, reason = "a signal is handled")]

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use test_support::nix::sys::signal::{SaFlags, Signal};
use test_support::{child, filter, not_run, not_run_here, signals};
use vdso_time::arch::NATIVE;
use vdso_time::syscall;
use vdso_time::vdso::Vdso;

/// Where the last system call that was trapped comes from.
static CALL_ADDRESS: AtomicUsize = AtomicUsize::new(0);

extern "C" fn on_trap(_: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel gives a handler with SA_SIGINFO a valid siginfo_t.
    let info = unsafe { &*info };
    // SAFETY: SIGSYS has the address of the call in this place.
    let address = unsafe { info.si_addr() };
    CALL_ADDRESS.store(address.addr(), Ordering::Relaxed);
    // SAFETY: the context is the kernel's.
    unsafe { signals::answer(context, 0) };
}

/// Where getcpu(2) is called.
fn call_address() -> usize {
    CALL_ADDRESS.store(0, Ordering::Relaxed);
    assert!(syscall::getcpu().is_ok());
    CALL_ADDRESS.load(Ordering::Relaxed)
}

#[test]
fn i386_enters_the_kernel_in_the_vdso_once_it_is_found() {
    let Some(abi) = NATIVE else { return not_run("libc makes the system calls") };
    let end = child::end_of(|| {
        signals::handle(Signal::SIGSYS, SaFlags::empty(), on_trap);
        // Nothing else here calls getcpu(2).
        if filter::restrict(&[abi.getcpu.syscalls[0].number], filter::TRAP).is_err() {
            return false;
        }
        let before = call_address();
        let _ = vdso_time::routes();
        let after = call_address();
        assert!(before != 0 && after != 0);
        match Vdso::locate() {
            Ok(vdso) => {
                let has_entry = vdso.symbol_address("__kernel_vsyscall", Some("LINUX_2.5")).is_some();
                assert_eq!(has_entry, abi.name == "x86");
                assert!(!vdso.contains(before), "{before:#x}");
                assert_eq!(vdso.contains(after), has_entry, "{after:#x}");
            }
            Err(_) => assert_eq!(before, after),
        }
        true
    });
    if end == child::BADLY {
        return not_run_here("seccomp", "there is no seccomp");
    }
    assert_eq!(end, child::WELL);
}
