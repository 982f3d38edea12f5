//! The promise: on i386 the crate makes a system call by the vDSO's entry once it has found the
//! vDSO, and by an instruction of its own before that. Elsewhere it always uses its own
//! instruction.
//!
//! A seccomp filter tells where each call comes from.

#![allow(unsafe_code, reason = "a signal is handled, and a child ends")]

use test_support::filter;
use test_support::register;

use std::ffi::{c_int, c_void};
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use test_support::{child, not_run, not_run_here};
use vdso_time::arch::{Abi, NATIVE};
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
    unsafe { register::answer(context, 0) };
}

/// Has getcpu(2), which nothing else here calls, trapped in this thread.
fn trap_getcpu(abi: &Abi) -> bool {
    // SAFETY: all zero is an action with no flags and an empty mask.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = on_trap as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize;
    action.sa_flags = libc::SA_SIGINFO;
    // SAFETY: the handler has the signature that SA_SIGINFO wants.
    assert_eq!(unsafe { libc::sigaction(libc::SIGSYS, &raw const action, ptr::null_mut()) }, 0);
    let mut filter = filter::denying(abi, &[abi.getcpu.syscalls[0].number], 1);
    for statement in filter.iter_mut().filter(|statement| statement.k == libc::SECCOMP_RET_ERRNO | 1) {
        statement.k = libc::SECCOMP_RET_TRAP;
    }
    filter::install(&mut filter).is_ok()
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
    let status = child::end_of(|| {
        if !trap_getcpu(abi) {
            // SAFETY: _exit(2) takes any status.
            unsafe { libc::_exit(1) };
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
    });
    if status == 1 << 8 {
        return not_run_here("seccomp", "there is no seccomp");
    }
    assert_eq!(status, 0, "the child's status");
}
