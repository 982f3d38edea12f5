//! Syscall User Dispatch (Documentation/admin-guide/syscall-user-dispatch.rst): the kernel sends
//! SIGSYS instead of making a system call of this thread while a byte of ours says so. The handler
//! notes where the call came from.

#![allow(unsafe_code, reason = "prctl(2), and a signal handler")]

use std::ffi::{c_int, c_long, c_void};
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal, sigaction};
use nix::unistd::getppid;
use vdso_time::vdso::Vdso;

use super::{Count, Cpus, Entry, count_reads};

// include/uapi/linux/prctl.h and asm-generic/siginfo.h, which libc does not have for every target.
const PR_SET_SYSCALL_USER_DISPATCH: c_int = 59;
const PR_SYS_DISPATCH_OFF: c_long = 0;
const PR_SYS_DISPATCH_ON: c_long = 1;
const ALLOW: u8 = 0;
const BLOCK: u8 = 1;
const SYS_USER_DISPATCH: c_int = 2;

/// The byte that the kernel reads.
static SELECTOR: AtomicU8 = AtomicU8::new(ALLOW);

/// The system call that was caught, and where it came from.
static NUMBER: AtomicI32 = AtomicI32::new(NONE);
static ADDRESS: AtomicUsize = AtomicUsize::new(0);
const NONE: i32 = -1;

/// One thread at a time: the statics and the signal handler belong to the process.
static TURN: Mutex<()> = Mutex::new(());

/// The start of a `siginfo_t` of SIGSYS.
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

/// The dispatch is on while this lives.
struct Dispatch {
    old_action: SigAction,
    old_mask: SigSet,
    _turn: MutexGuard<'static, ()>,
}

impl Dispatch {
    fn on() -> io::Result<Self> {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let handler = SigHandler::SigAction(caught);
        let action = SigAction::new(handler, SaFlags::empty(), SigSet::empty());
        // SAFETY: the handler stores to atomics alone.
        let old_action = unsafe { sigaction(Signal::SIGSYS, &action) }?;
        // A blocked SIGSYS would end the process. Another signal's handler would lose system calls.
        let mut others = SigSet::all();
        others.remove(Signal::SIGSYS);
        let old_mask = others.thread_swap_mask(SigmaskHow::SIG_SETMASK)?;
        let dispatch = Self { old_action, old_mask, _turn: turn };
        set(PR_SYS_DISPATCH_ON, SELECTOR.as_ptr())?;
        Ok(dispatch)
    }

    /// The number and the address of the system call that `work` makes, if it makes one.
    #[allow(clippy::unused_self, reason = "system calls are caught only while the dispatch is on")]
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
        // None of these can fail: each undoes what succeeded.
        let _ = set(PR_SYS_DISPATCH_OFF, ptr::null_mut());
        let _ = self.old_mask.thread_set_mask();
        // SAFETY: the kernel returned this action for the signal.
        let _ = unsafe { sigaction(Signal::SIGSYS, &self.old_action) };
    }
}

/// No range of addresses is exempt.
fn set(mode: c_long, selector: *mut u8) -> io::Result<()> {
    let none: c_long = 0;
    // SAFETY: the kernel reads the selector, which is a static.
    let result = unsafe { libc::prctl(PR_SET_SYSCALL_USER_DISPATCH, mode, none, none, selector) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Notes the call. It is not made: nobody uses the answer.
extern "C" fn caught(_signal: c_int, info: *mut libc::siginfo_t, _context: *mut c_void) {
    // SAFETY: with SA_SIGINFO the kernel passes a valid siginfo_t, which for SIGSYS begins like this.
    let info = unsafe { &*info.cast::<Sigsys>() };
    if info.si_code == SYS_USER_DISPATCH {
        SELECTOR.store(ALLOW, Ordering::SeqCst);
        NUMBER.store(info.si_syscall, Ordering::Relaxed);
        ADDRESS.store(info.si_call_addr.addr(), Ordering::Relaxed);
    }
}

/// Checks that a system call is caught.
pub(super) fn check() -> io::Result<()> {
    let caught = Dispatch::on()?.catch(|| _ = getppid());
    let is_caught = caught.is_some_and(|(number, _)| c_long::from(number) == libc::SYS_getppid);
    if is_caught { Ok(()) } else { Err(io::ErrorKind::Unsupported.into()) }
}

/// Counts the reads that make a system call.
pub(super) fn count(entry: Entry, cpus: Option<&Cpus>) -> io::Result<Count> {
    let vdso = Vdso::locate().map_err(io::Error::other)?;
    let dispatch = Dispatch::on()?;
    let (mut outside, mut syscall) = (0, None);
    let count = count_reads(cpus, || {
        let caught = dispatch.catch(|| _ = entry.call());
        if let Some((number, address)) = caught {
            outside += u32::from(!vdso.contains(address));
            syscall = Some(number);
        }
        caught.is_some()
    })?;
    Ok(Count { outside, syscall, ..count })
}
