//! The promise: a call is frugal with the stack, so that a signal handler, a small thread or a coroutine can make it.
//!
//! Each call is made on a painted stack; how far down the paint is gone says how deep it went, the vDSO's own frames with it.
//! `cargo test --release --test stack -- --nocapture` prints the numbers.

#![allow(unsafe_code, reason = "a signal handler on a stack of its own")]

use std::ffi::c_int;
use std::fmt::Write as _;
use std::hint::black_box;
use std::mem;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use test_support::{child, oracle};
use vdso_time::{ClockId, Instant, syscall};

const SIZE: usize = 256 * 1024;
const PAINT: u8 = 0xa5;

/// What may be used from the second call on, and by the first, which finds the function. Debug builds keep every value in memory.
const LATER: usize = if cfg!(debug_assertions) { 2048 } else { 256 };
const FIRST: usize = match (cfg!(debug_assertions), cfg!(all(target_arch = "x86_64", feature = "libc"))) {
    (true, _) => 8192,
    (false, true) => 1280,
    (false, false) => 2048,
};

static CALL: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());
static TOP: AtomicUsize = AtomicUsize::new(0);

extern "C" fn make_call(_: c_int) {
    let here = 0_u8;
    TOP.store((&raw const here).addr(), Ordering::Relaxed);
    // SAFETY: `depth` has put a `fn()` there.
    let call = unsafe { mem::transmute::<*mut (), fn()>(CALL.load(Ordering::Relaxed)) };
    call();
}

/// The bytes of stack that a call uses.
fn depth(call: fn()) -> usize {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock();
    CALL.store(call as *mut (), Ordering::Relaxed);
    let mut stack = vec![PAINT; SIZE];
    let new = libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: SIZE };
    // SAFETY: a `stack_t` is numbers and a pointer, which may be null.
    let mut old: libc::stack_t = unsafe { mem::zeroed() };
    // SAFETY: the stack outlives its use, which ends below.
    assert_eq!(unsafe { libc::sigaltstack(&raw const new, &raw mut old) }, 0);
    // SAFETY: a `sigaction` is numbers and pointers, which may be null.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    let handler: extern "C" fn(c_int) = make_call;
    action.sa_sigaction = handler as usize;
    action.sa_flags = libc::SA_ONSTACK;
    // SAFETY: the handler makes the call, which is to be good in a signal handler.
    assert_eq!(unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, ptr::null_mut()) }, 0);
    // SAFETY: the signal has a handler.
    assert_eq!(unsafe { libc::raise(libc::SIGUSR1) }, 0);
    // SAFETY: the stack is what it was before.
    assert_eq!(unsafe { libc::sigaltstack(&raw const old, ptr::null_mut()) }, 0);

    let untouched = black_box(&stack).iter().take_while(|byte| **byte == PAINT).count();
    assert_ne!(untouched, 0, "the stack is too small");
    TOP.load(Ordering::Relaxed) - (stack.as_ptr().addr() + untouched)
}

type Call = (&'static str, fn());

const CALLS: &[Call] = &[
    ("time", || _ = black_box(vdso_time::time())),
    ("gettimeofday", || _ = black_box(vdso_time::gettimeofday())),
    ("clock_gettime", || _ = black_box(vdso_time::clock_gettime(ClockId::MONOTONIC))),
    ("clock_getres", || _ = black_box(vdso_time::clock_getres(ClockId::MONOTONIC))),
    ("getcpu", || _ = black_box(vdso_time::getcpu())),
    ("Instant::now", || _ = black_box(Instant::now())),
    ("a clock that there is not", || _ = black_box(vdso_time::clock_gettime(ClockId::from_raw(99)))),
    ("syscall::clock_gettime", || _ = black_box(syscall::clock_gettime(ClockId::MONOTONIC))),
    ("syscall::getcpu", || _ = black_box(syscall::getcpu())),
];

#[test]
fn a_call_uses_little_stack() {
    child::forked(measure);
}

fn measure() {
    // The dynamic loader, if it has anything left to bind, does so here.
    black_box(oracle::sysinfo_ehdr());
    let nothing = depth(|| ());
    let mut lines = format!("{:26} {:>6} {:>6}\n", "bytes of stack", "first", "later");
    let mut wrong = Vec::new();
    for (name, call) in CALLS {
        let [first, later] = [(); 2].map(|()| depth(*call).saturating_sub(nothing));
        let _ = writeln!(lines, "{name:26} {first:6} {later:6}"); // a String takes every write
        if first > FIRST || later > LATER {
            wrong.push(*name);
        }
    }
    print!("{lines}");
    assert!(wrong.is_empty(), "{wrong:?} use more than {FIRST} or {LATER} bytes:\n{lines}");
}

/// What is measured is what is used.
#[test]
fn a_deep_call_is_seen() {
    let deep = || _ = black_box([0_u8; 10_000]);
    child::forked(|| assert!((10_000..40_000).contains(&depth(deep))));
}
