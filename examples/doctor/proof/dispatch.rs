//! Syscall User Dispatch (Documentation/admin-guide/syscall-user-dispatch.rst): the kernel sends SIGSYS instead of making
//! a system call of this thread, as long as a byte of ours says so. The handler notes where the call came from, and
//! lets it through.

#![allow(unsafe_code, reason = "prctl, and a signal handler")]

use std::ffi::{c_int, c_long, c_void};
use std::io;
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicUsize, Ordering};

use vdso_time::vdso::Vdso;

use super::{Count, Cpus, Entry, on_each_cpu};

// include/uapi/linux/prctl.h and asm-generic/siginfo.h, which libc does not have for every target.
const PR_SET_SYSCALL_USER_DISPATCH: c_int = 59;
const PR_SYS_DISPATCH_OFF: c_long = 0;
const PR_SYS_DISPATCH_ON: c_long = 1;
const ALLOW: u8 = 0;
const BLOCK: u8 = 1;
const SYS_USER_DISPATCH: c_int = 2;

/// Whether libc lets the registers of an interrupted thread be written here.
const CAN_REWIND: bool = cfg!(any(
    target_arch = "x86_64",
    all(target_arch = "x86", any(target_env = "gnu", target_os = "android")),
    target_arch = "aarch64"
));

/// The byte that the kernel looks at.
static SELECTOR: AtomicU8 = AtomicU8::new(ALLOW);

/// The system call that was caught: its number, or `NONE`, and where it came from.
static NUMBER: AtomicI32 = AtomicI32::new(NONE);
static ADDRESS: AtomicUsize = AtomicUsize::new(0);
const NONE: i32 = -1;

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
    mask_before: libc::sigset_t,
}

impl Dispatch {
    fn on() -> io::Result<Self> {
        if !CAN_REWIND {
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
        // SAFETY: a set of signals is bits.
        let mut sigsys: libc::sigset_t = unsafe { mem::zeroed() };
        // SAFETY: the set is ours, the signal is one.
        unsafe { libc::sigaddset(&raw mut sigsys, libc::SIGSYS) };
        let mut mask_before = sigsys;
        // Blocked, as a parent may have left it, it would end the process.
        // SAFETY: libc reads one set and writes the other.
        unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const sigsys, &raw mut mask_before) };
        let dispatch = Self { handler_before, mask_before };
        set(PR_SYS_DISPATCH_ON, SELECTOR.as_ptr())?;
        Ok(dispatch)
    }

    /// The number of the system call that `work` makes, if it makes one, and where it is made.
    #[allow(clippy::unused_self, reason = "nothing is caught but while the dispatch is on")]
    fn catch(&self, work: impl FnOnce()) -> Option<(i32, usize)> {
        NUMBER.store(NONE, Ordering::Relaxed);
        SELECTOR.store(BLOCK, Ordering::SeqCst);
        work();
        SELECTOR.store(ALLOW, Ordering::SeqCst);
        let number = NUMBER.load(Ordering::Relaxed);
        (number != NONE).then(|| (number, ADDRESS.load(Ordering::Relaxed)))
    }
}

impl Drop for Dispatch {
    fn drop(&mut self) {
        // None of these fails that succeeded before.
        let _ = set(PR_SYS_DISPATCH_OFF, ptr::null_mut());
        // SAFETY: the set is the one that libc gave.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.mask_before, ptr::null_mut()) };
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
    NUMBER.store(info.si_syscall, Ordering::Relaxed);
    ADDRESS.store(info.si_call_addr.addr(), Ordering::Relaxed);
    // SAFETY: the kernel gives the context too, at least as far as the registers, and this handler alone has it.
    rewind(unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext });
}

/// Sets the program counter back to the instruction that made the call: it is behind it.
#[cfg(target_arch = "x86_64")]
fn rewind(registers: &mut libc::mcontext_t) {
    registers.gregs[libc::REG_RIP as usize] -= 2; // syscall
}

#[cfg(all(target_arch = "x86", any(target_env = "gnu", target_os = "android")))]
fn rewind(registers: &mut libc::mcontext_t) {
    // The kernel has those that came by `sysenter` return behind an `int 0x80`, for this very purpose.
    registers.gregs[libc::REG_EIP as usize] -= 2;
}

#[cfg(target_arch = "aarch64")]
fn rewind(registers: &mut libc::mcontext_t) {
    registers.pc -= 4; // svc 0
}

#[cfg(not(any(
    target_arch = "x86_64",
    all(target_arch = "x86", any(target_env = "gnu", target_os = "android")),
    target_arch = "aarch64"
)))]
fn rewind<T>(_registers: &mut T) {}

/// Sees that a system call is caught, and that it is made all the same.
pub(super) fn check() -> io::Result<()> {
    let dispatch = Dispatch::on()?;
    let mut parent = 0;
    // SAFETY: getppid(2) always succeeds.
    let caught = dispatch.catch(|| parent = unsafe { libc::getppid() });
    drop(dispatch);
    let number = i32::try_from(libc::SYS_getppid).ok();
    // SAFETY: the same.
    let made = parent == unsafe { libc::getppid() };
    if made && caught.map(|(number, _)| number) == number {
        Ok(())
    } else {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Counts the reads that make a system call.
pub(super) fn count(entry: Entry, cpus: Option<&Cpus>) -> io::Result<Count> {
    let vdso = Vdso::locate().map_err(io::Error::other)?;
    let dispatch = Dispatch::on()?;
    let (mut outside, mut syscall) = (0, None);
    let count = on_each_cpu(entry, cpus, |entry| match dispatch.catch(|| _ = entry.call()) {
        Some((number, address)) => {
            outside += u32::from(!vdso.contains(address));
            syscall = Some(number);
            true
        }
        None => false,
    })?;
    Ok(Count { outside, syscall, ..count })
}
