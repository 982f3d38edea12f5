//! The promise: a call is frugal with the stack, so that a signal handler, a small thread or a
//! coroutine can make it.
//!
//! Each call is made on a painted stack. The paint that is gone shows how deep the call went, with
//! the vDSO's own frames. `cargo test --release --test process stack -- --nocapture` prints it.

#![allow(unsafe_code, reason = "a signal handler on a stack of its own")]

use std::ffi::{c_int, c_void};
use std::hint::black_box;
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use test_support::nix::sys::signal::{SaFlags, Signal, raise};
use test_support::{child, oracle, signals};
use vdso_time::{ClockId, Instant, syscall};

const SIZE: usize = 256 * 1024;
const PAINT: u8 = 0xa5;

/// The bytes that the first call and a later one may use. Debug builds keep every value in memory.
const FIRST: usize = if cfg!(debug_assertions) {
    12 * 1024
} else {
    2048
};
const LATER: usize = if cfg!(debug_assertions) { 2048 } else { 256 };

/// A signal stack on which a later call fits, with the kernel's frame and the handler's.
const SMALLEST: usize = if libc::MINSIGSTKSZ > 4096 {
    libc::MINSIGSTKSZ
} else {
    4096
};

static CALL: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());
static TOP: AtomicUsize = AtomicUsize::new(0);

extern "C" fn make_call(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
    let here = 0_u8;
    TOP.store((&raw const here).addr(), Ordering::Relaxed);
    // SAFETY: `depth` stored a `fn()` there.
    let call = unsafe { mem::transmute::<*mut (), fn()>(CALL.load(Ordering::Relaxed)) };
    call();
}

/// Returns how many bytes at the end of a stack were written to.
fn used(stack: &[u8]) -> usize {
    let untouched = black_box(stack)
        .iter()
        .take_while(|byte| **byte == PAINT)
        .count();
    assert_ne!(untouched, 0, "the stack is too small");
    stack.len() - untouched
}

/// Returns the bytes of stack that a call uses, and the bytes that a signal uses whose handler
/// makes the call.
fn depth(call: fn()) -> (usize, usize) {
    CALL.store(call as *mut (), Ordering::Relaxed);
    let mut stack = vec![PAINT; SIZE];
    let new = libc::stack_t {
        ss_sp: stack.as_mut_ptr().cast(),
        ss_flags: 0,
        ss_size: SIZE,
    };
    // SAFETY: a `stack_t` is numbers and a pointer, which may be null.
    let mut old: libc::stack_t = unsafe { mem::zeroed() };
    // SAFETY: the stack outlives its use, which ends below.
    let set = unsafe { libc::sigaltstack(&raw const new, &raw mut old) };
    assert_eq!(set, 0);
    signals::handle(Signal::SIGUSR1, SaFlags::SA_ONSTACK, make_call);
    raise(Signal::SIGUSR1).unwrap();
    // SAFETY: the stack is what it was before.
    let restored = unsafe { libc::sigaltstack(&raw const old, ptr::null_mut()) };
    assert_eq!(restored, 0);
    let all = used(&stack);
    let lowest = stack.as_ptr().addr() + SIZE - all;
    (TOP.load(Ordering::Relaxed) - lowest, all)
}

type Call = (&'static str, fn());

const CALLS: &[Call] = &[
    ("time", || _ = black_box(vdso_time::time())),
    ("gettimeofday", || _ = black_box(vdso_time::gettimeofday())),
    ("clock_gettime", || {
        _ = black_box(vdso_time::clock_gettime(ClockId::MONOTONIC));
    }),
    ("clock_getres", || {
        _ = black_box(vdso_time::clock_getres(ClockId::MONOTONIC));
    }),
    ("getcpu", || _ = black_box(vdso_time::getcpu())),
    ("Instant::now", || _ = black_box(Instant::now())),
    ("an unknown clock", || {
        _ = black_box(vdso_time::clock_gettime(ClockId::from_raw(99)));
    }),
    ("syscall::clock_gettime", || {
        _ = black_box(syscall::clock_gettime(ClockId::MONOTONIC));
    }),
    ("syscall::getcpu", || _ = black_box(syscall::getcpu())),
];

/// Measures a call that is the process's first, and a later one.
fn measure((name, call): Call) {
    // The dynamic loader, if it has anything left to bind, does so here.
    black_box(oracle::sysinfo_ehdr());
    let (nothing, _) = depth(|| ());
    let (first, _) = depth(call);
    let (later, all) = depth(call);
    let first = first.saturating_sub(nothing);
    let later = later.saturating_sub(nothing);
    let line = format!("{name:22} first {first:5} later {later:5} bytes of stack");
    println!("{line}");
    assert!(
        (1..=FIRST).contains(&first) && (1..=LATER).contains(&later),
        "{FIRST}, {LATER}: {line}"
    );
    assert!(
        cfg!(debug_assertions) || all <= SMALLEST,
        "{all} bytes of a signal stack: {line}"
    );
}

#[test]
fn a_call_uses_little_stack() {
    for call in CALLS {
        child::forked(|| measure(*call));
    }
}
