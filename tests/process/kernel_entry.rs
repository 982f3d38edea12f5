//! The promises: a signal handler can unwind the stack from the instruction that enters the kernel,
//! where the kernel delivers most signals. On i386 that instruction is the vDSO's once the crate
//! has found the vDSO. Before that, and elsewhere, it is the crate's own.
//!
//! A seccomp filter sends a signal at each system call, and tgkill(2) needs no filter for that.

#![allow(unsafe_code, reason = "a signal is handled")]

use std::ffi::{c_int, c_void};
use std::hint::black_box;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use test_support::child::{self, End, SUCCESS};
use test_support::nix::sys::signal::{SaFlags, Signal, raise};
use test_support::nix::unistd::{getppid, gettid};
use test_support::{FUNCTIONS, PATHS, Path, filter, not_run_here, oracle, signals};
use vdso_time::__private::{NATIVE, checked};
use vdso_time::ClockId;
use vdso_time::vdso::Vdso;

// The linker makes these of the section's name.
unsafe extern "C" {
    #[link_name = "__start_vdso_time_read"]
    static READ_START: u8;
    #[link_name = "__stop_vdso_time_read"]
    static READ_END: u8;
}

/// Makes a call. The function has a section of its own, so its addresses are known.
#[inline(never)]
#[unsafe(link_section = "vdso_time_read")]
fn read(read: &dyn Fn() -> bool) -> bool {
    black_box(read())
}

/// Where the last system call that was trapped comes from, and whether [`read`] is in its
/// backtrace.
static CALL_ADDRESS: AtomicUsize = AtomicUsize::new(0);
static IS_UNWOUND: AtomicBool = AtomicBool::new(false);

/// Records where the call came from. Its result depends on the architecture, and no test reads it.
extern "C" fn on_trap(_: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel gives a handler with SA_SIGINFO a valid siginfo_t.
    let info = unsafe { &*info };
    // SAFETY: for SIGSYS the field has the address of the call.
    let address = unsafe { info.si_addr() };
    CALL_ADDRESS.store(address.addr(), Ordering::Relaxed);
    look_for_read();
}

extern "C" fn on_signal(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
    look_for_read();
}

fn look_for_read() {
    let code = (&raw const READ_START).addr()..(&raw const READ_END).addr();
    IS_UNWOUND.store(
        backtrace().iter().any(|frame| code.contains(&frame.addr())),
        Ordering::Relaxed,
    );
}

/// Returns the return addresses on the stack, by the C library's unwinder.
fn backtrace() -> [*mut c_void; 64] {
    let mut frames = [ptr::null_mut(); 64];
    #[cfg(target_env = "gnu")]
    // SAFETY: the array has room for 64 addresses.
    unsafe {
        libc::backtrace(frames.as_mut_ptr(), 64);
    }
    frames
}

/// Returns where each function of a path enters the kernel. Fails unless a handler unwinds from
/// there.
fn entries(path: &Path, has_backtrace: bool) -> [usize; 5] {
    FUNCTIONS.each_ref().map(|function| {
        CALL_ADDRESS.store(0, Ordering::Relaxed);
        read(&|| (function.read)(path, ClockId::MONOTONIC).is_ok());
        let is_unwound = IS_UNWOUND.swap(false, Ordering::Relaxed);
        assert!(
            is_unwound || !has_backtrace,
            "{} {}: no backtrace",
            path.name,
            function.name
        );
        CALL_ADDRESS.load(Ordering::Relaxed)
    })
}

#[test]
fn a_handler_unwinds_from_the_kernels_entry_which_is_the_vdsos_on_i386() {
    let Some(abi) = NATIVE else {
        return not_run_here("libc makes the system calls");
    };
    if !filter::works() {
        return;
    }
    for has_vdso in [true, false] {
        child::forked(|| {
            // The first call loads and allocates what the later ones use, which a handler must not
            // do.
            backtrace();
            if !has_vdso || oracle::sysinfo_ehdr() == 0 {
                child::set_vdso(0);
            }
            signals::handle(Signal::SIGSYS, SaFlags::empty(), on_trap);
            let calls = [&[libc::SYS_getppid as u32], &filter::clock_calls(abi)[..]].concat();
            filter::restrict(&calls, filter::TRAP).unwrap();
            read(&|| getppid().as_raw() == 0);
            let has_backtrace = IS_UNWOUND.swap(false, Ordering::Relaxed);
            if !has_backtrace {
                not_run_here("libc's own system calls cannot be unwound");
            }
            let before = entries(&PATHS[1], has_backtrace);
            let _ = vdso_time::routes();
            let after = entries(&PATHS[1], has_backtrace);
            assert!(!before.contains(&0) && !after.contains(&0));
            match Vdso::locate() {
                Ok(vdso) if has_vdso => {
                    let entry = vdso.symbol_address("__kernel_vsyscall", Some("LINUX_2.5"));
                    assert_eq!(entry.is_some(), abi.name == "x86");
                    let base = vdso.base().addr();
                    let image = base..base + vdso.size();
                    for call in before {
                        assert!(!image.contains(&call), "{before:x?}");
                    }
                    for call in after {
                        assert_eq!(image.contains(&call), entry.is_some(), "{after:x?}");
                    }
                }
                _ => {
                    assert_eq!(before, after);
                    assert!(!entries(&PATHS[0], has_backtrace).contains(&0));
                }
            }
        });
    }
}

// Calls a function as C code without optimisation does: its frame is found by r7, the frame pointer
// of Thumb code. The number of a system call goes to r7 as well.
#[cfg(target_arch = "arm")]
std::arch::global_asm!(
    ".thumb",
    ".thumb_func",
    ".type vdso_time_test_frame,%function",
    "vdso_time_test_frame:",
    ".fnstart",
    ".save {{r7, lr}}",
    "push {{r7, lr}}",
    ".pad #16",
    "sub sp, sp, #16",
    ".setfp r7, sp",
    "mov r7, sp",
    "blx r0",
    "add sp, sp, #16",
    "pop {{r7, pc}}",
    ".fnend",
    ".arm",
);

#[cfg(target_arch = "arm")]
fn in_a_frame_of_c(function: extern "C" fn()) {
    unsafe extern "C" {
        fn vdso_time_test_frame(function: extern "C" fn());
    }
    // SAFETY: it only calls the function.
    unsafe { vdso_time_test_frame(function) }
}

#[cfg(not(target_arch = "arm"))]
fn in_a_frame_of_c(function: extern "C" fn()) {
    function();
}

/// Sends a signal to this thread by the crate's system call. The handler runs before it returns.
extern "C" fn signal_this_thread() {
    let thread = gettid().as_raw() as usize;
    let args = [
        std::process::id() as usize,
        thread,
        libc::SIGUSR1 as usize,
        0,
        0,
    ];
    // SAFETY: the signal has a handler, and the call reads and writes no memory.
    let sent = unsafe { checked(libc::SYS_tgkill as u32, args) };
    assert!(sent.is_ok(), "{sent:?}");
}

#[test]
fn a_handler_unwinds_through_a_caller_without_optimisation() {
    if NATIVE.is_none() {
        return not_run_here("libc makes the system calls");
    }
    // The first child shows whether libc's unwinder works here at all. It crashes in QEMU's user
    // mode on i386 and loongarch64, in a C program as well.
    let is_unwound_from = |call: fn() -> bool| {
        child::end_of(|| {
            backtrace();
            signals::handle(Signal::SIGUSR1, SaFlags::empty(), on_signal);
            read(&call) && IS_UNWOUND.load(Ordering::Relaxed)
        })
    };
    let end = is_unwound_from(|| raise(Signal::SIGUSR1).is_ok());
    assert_ne!(end, End::Status(101), "the child panicked");
    if end != SUCCESS {
        return not_run_here("libc's own system calls cannot be unwound");
    }
    let end = is_unwound_from(|| {
        in_a_frame_of_c(signal_this_thread);
        true
    });
    assert_eq!(end, SUCCESS);
}
