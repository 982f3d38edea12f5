//! Syscall User Dispatch (Documentation/admin-guide/syscall-user-dispatch.rst): the kernel sends SIGSYS instead of making
//! a system call of this thread, as long as a byte of ours says so. The handler notes where the call came from, and
//! lets it through.

#![allow(unsafe_code, reason = "prctl, and a signal handler")]

use std::ffi::{c_int, c_long, c_void};
use std::io;
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering};

use vdso_time::vdso::Vdso;

use super::{Count, Cpus, Entry, on_each_cpu};

// include/uapi/linux/prctl.h and asm-generic/siginfo.h, which libc does not have for every target.
const PR_SET_SYSCALL_USER_DISPATCH: c_int = 59;
const PR_SYS_DISPATCH_OFF: c_long = 0;
const PR_SYS_DISPATCH_ON: c_long = 1;
const ALLOW: u8 = 0;
const BLOCK: u8 = 1;
const SYS_USER_DISPATCH: c_int = 2;

/// The byte that the kernel looks at.
static SELECTOR: AtomicU8 = AtomicU8::new(ALLOW);
/// System calls caught, and where the last came from.
static CAUGHT: AtomicU32 = AtomicU32::new(0);
static CALL_ADDRESS: AtomicUsize = AtomicUsize::new(0);

/// The head of a `siginfo_t` of SIGSYS.
#[repr(C)]
#[allow(clippy::struct_field_names, reason = "the names are those of sigaction(2)")]
struct Sigsys {
    si_signo: c_int,
    si_errno: c_int,
    si_code: c_int,
    si_call_addr: *mut c_void,
    si_syscall: c_int,
    si_arch: u32,
}

/// The dispatch, as long as this lives.
struct Dispatch {
    handler_before: libc::sigaction,
}

impl Dispatch {
    fn on() -> io::Result<Self> {
        if !cfg!(any(target_arch = "x86_64", target_arch = "x86", target_arch = "aarch64")) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = caught;
        // SAFETY: a `sigaction` is numbers and pointers, which may be null.
        let mut action: libc::sigaction = unsafe { mem::zeroed() };
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO;
        // SAFETY: as above.
        let mut handler_before: libc::sigaction = unsafe { mem::zeroed() };
        // SAFETY: the handler stores to atomics and to its context alone.
        if unsafe { libc::sigaction(libc::SIGSYS, &raw const action, &raw mut handler_before) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let dispatch = Self { handler_before };
        set(PR_SYS_DISPATCH_ON, SELECTOR.as_ptr())?;
        Ok(dispatch)
    }

    /// Whether `work`, which may make one system call, made one.
    #[allow(clippy::unused_self, reason = "nothing is caught but while the dispatch is on")]
    fn catches(&self, work: impl FnOnce()) -> bool {
        let before = CAUGHT.load(Ordering::Relaxed);
        SELECTOR.store(BLOCK, Ordering::SeqCst);
        work();
        SELECTOR.store(ALLOW, Ordering::SeqCst);
        CAUGHT.load(Ordering::Relaxed) != before
    }
}

impl Drop for Dispatch {
    fn drop(&mut self) {
        // Neither fails that succeeded before.
        let _ = set(PR_SYS_DISPATCH_OFF, ptr::null_mut());
        // SAFETY: the action is the one that the kernel gave.
        unsafe { libc::sigaction(libc::SIGSYS, &raw const self.handler_before, ptr::null_mut()) };
    }
}

/// No range of addresses is exempt.
fn set(mode: c_long, selector: *mut u8) -> io::Result<()> {
    let none: c_long = 0;
    // SAFETY: the kernel reads the selector, which is a static.
    if unsafe { libc::prctl(PR_SET_SYSCALL_USER_DISPATCH, mode, none, none, selector) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Notes the call, and has the thread make it again, unseen: the kernel has put its registers back as they were.
extern "C" fn caught(_signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel gives a handler with SA_SIGINFO a valid siginfo_t; of SIGSYS, it is this.
    let info = unsafe { &*info.cast::<Sigsys>() };
    if info.si_code != SYS_USER_DISPATCH {
        return;
    }
    SELECTOR.store(ALLOW, Ordering::SeqCst);
    CAUGHT.fetch_add(1, Ordering::Relaxed);
    CALL_ADDRESS.store(info.si_call_addr.addr(), Ordering::Relaxed);
    // SAFETY: and a valid ucontext_t, which is this handler's alone.
    rewind(unsafe { &mut *context.cast::<libc::ucontext_t>() });
}

/// Sets the program counter back to the instruction that made the call: it is behind it.
#[cfg(target_arch = "x86_64")]
fn rewind(context: &mut libc::ucontext_t) {
    context.uc_mcontext.gregs[libc::REG_RIP as usize] -= 2; // syscall
}

#[cfg(target_arch = "x86")]
fn rewind(context: &mut libc::ucontext_t) {
    // The kernel has those that came by `sysenter` return behind an `int 0x80`, for this very purpose.
    context.uc_mcontext.gregs[libc::REG_EIP as usize] -= 2;
}

#[cfg(target_arch = "aarch64")]
fn rewind(context: &mut libc::ucontext_t) {
    context.uc_mcontext.pc -= 4; // svc 0
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "x86", target_arch = "aarch64")))]
fn rewind(_context: &mut libc::ucontext_t) {}

/// Sees that a system call is caught, and that it is made all the same.
pub(super) fn check() -> io::Result<()> {
    let dispatch = Dispatch::on()?;
    let mut parent = 0;
    // SAFETY: getppid(2) always succeeds.
    let caught = dispatch.catches(|| parent = unsafe { libc::getppid() });
    drop(dispatch);
    // SAFETY: the same.
    if caught && parent == unsafe { libc::getppid() } {
        Ok(())
    } else {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Counts the reads that make a system call.
pub(super) fn count(entry: Entry, cpus: Option<&Cpus>) -> io::Result<Count> {
    let vdso = Vdso::locate().map_err(io::Error::other)?;
    let dispatch = Dispatch::on()?;
    let mut outside = 0;
    let count = on_each_cpu(entry, cpus, |entry| {
        let caught = dispatch.catches(|| _ = entry.call());
        outside += u32::from(caught && !vdso.contains(CALL_ADDRESS.load(Ordering::Relaxed)));
        caught
    })?;
    Ok(Count { outside, ..count })
}
