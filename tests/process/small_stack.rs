//! The promise: 4 KiB of a signal stack, or a coroutine's stack of 8 KiB, are enough for a first call, and a signal stack of
//! 4 KiB in all for any later one.
//!
//! Behind each stack is a page that cannot be touched. `tests/process/stack.rs` measures what a call takes.

#![allow(unsafe_code, reason = "stacks are made")]

use std::ffi::{c_int, c_void};
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use test_support::{PATHS, answers, child, not_run};

/// What a handler has, besides what the kernel takes for its frame. A debug build keeps every value in memory.
const ROOM: usize = if cfg!(debug_assertions) { 8192 } else { 4096 };

/// A child in which SIGSEGV is what it is without std's handler, which takes a lock.
#[track_caller]
fn forked(work: impl FnOnce()) {
    child::forked(|| {
        // SAFETY: it takes numbers.
        unsafe { libc::signal(libc::SIGSEGV, libc::SIG_DFL) };
        work();
    });
}

/// A stack whose lower end is a page that cannot be touched. It is there for good.
struct Stack {
    lowest: *mut u8,
    size: usize,
}

impl Stack {
    fn new(size: usize) -> Self {
        // SAFETY: it has no precondition.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize };
        let (all, flags) = (page + size.next_multiple_of(page), libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: the kernel chooses a place where nothing is.
        let guard = unsafe { libc::mmap(ptr::null_mut(), all, libc::PROT_NONE, flags, -1, 0) };
        assert_ne!(guard, libc::MAP_FAILED);
        let lowest = guard.cast::<u8>().wrapping_add(page);
        // SAFETY: the pages are this mapping's own.
        let set = unsafe { libc::mprotect(lowest.cast(), all - page, libc::PROT_READ | libc::PROT_WRITE) };
        assert_eq!(set, 0);
        Self { lowest, size }
    }

    fn top(&self) -> *mut u8 {
        self.lowest.wrapping_add(self.size)
    }
}

static TOP: AtomicUsize = AtomicUsize::new(0);
static READS: AtomicBool = AtomicBool::new(false);
static WRONG: AtomicBool = AtomicBool::new(false);

extern "C" fn on_signal(_: c_int) {
    let here = 0_u8;
    TOP.store((&raw const here).addr(), Ordering::Relaxed);
    if READS.load(Ordering::Relaxed) {
        WRONG.store(answers::wrong(&PATHS[0]).is_some(), Ordering::Relaxed);
    }
}

/// Lets the handler run on a stack of its own, of this size, and gives what is left of that below the handler's frame.
fn signal_on_a_stack(size: usize, reads: bool) -> usize {
    READS.store(reads, Ordering::Relaxed);
    let stack = Stack::new(size);
    let new = libc::stack_t { ss_sp: stack.lowest.cast(), ss_flags: 0, ss_size: size };
    // SAFETY: the stack is there for good.
    assert_eq!(unsafe { libc::sigaltstack(&raw const new, ptr::null_mut()) }, 0);
    // SAFETY: all zero is an action with no flags and an empty mask.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = on_signal as extern "C" fn(c_int) as usize;
    action.sa_flags = libc::SA_ONSTACK;
    // SAFETY: the handler has the signature that an action without SA_SIGINFO wants.
    assert_eq!(unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, ptr::null_mut()) }, 0);
    // SAFETY: the signal has a handler.
    assert_eq!(unsafe { libc::raise(libc::SIGUSR1) }, 0);
    assert!(!WRONG.load(Ordering::Relaxed));
    TOP.load(Ordering::Relaxed) - stack.lowest.addr()
}

#[test]
fn a_first_call_takes_less_than_4_kib_of_a_signal_stack() {
    forked(|| {
        let large = 64 * 1024;
        let frame = (large - signal_on_a_stack(large, false)) & !63; // it is aligned
        let room = signal_on_a_stack(frame + ROOM, true);
        assert!(room <= ROOM, "{room}");
    });
}

#[test]
fn a_later_call_fits_the_smallest_signal_stack() {
    if cfg!(debug_assertions) {
        return not_run("a debug build keeps every value in memory");
    }
    forked(|| {
        assert_eq!(answers::wrong(&PATHS[0]), None);
        signal_on_a_stack(libc::MINSIGSTKSZ.max(4096), true);
    });
}

extern "C" fn coroutine(_: *mut c_void) -> c_int {
    child::end_with_parent();
    let status = c_int::from(answers::wrong(&PATHS[0]).is_some());
    // A return would be exit(2): see `child::fork`.
    // SAFETY: _exit(2) takes any status.
    unsafe { libc::_exit(status) }
}

/// A process that has its maker's memory, and a stack of its own, is a coroutine that the kernel switches to.
#[test]
fn a_coroutine_with_8_kib_can_make_the_first_call() {
    forked(|| {
        let stack = Stack::new(8192);
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: the stack is there for good; this process waits until the other has ended.
        let pid = unsafe { libc::clone(coroutine, stack.top().cast(), flags, ptr::null_mut()) };
        assert!(pid > 0);
        assert_eq!(child::wait(pid, child::LIMIT), 0);
    });
}
