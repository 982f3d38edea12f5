//! Reads the clock a thousand times in the handler of a timer's signal. The first read in a process
//! finds the vDSO. Here, the handler may make this first read, or may interrupt it.
//!
//! A handler must not panic, so this one calls `try_now()`. Like every signal handler, it must not
//! print or allocate either (signal-safety(7)). vdso-time does neither.

#![no_std]
#![no_main]

use core::ffi::c_int;
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use vdso_time::Instant;

static NANOS: AtomicI64 = AtomicI64::new(0);
static COUNT: AtomicU32 = AtomicU32::new(0);

extern "C" fn handler(_: c_int) {
    if let Ok(now) = Instant::try_now() {
        NANOS.store(now.as_nanos(), Ordering::Relaxed);
        COUNT.fetch_add(1, Ordering::Relaxed);
    }
}

#[unsafe(no_mangle)]
extern "C" fn main() -> c_int {
    let each = libc::timeval {
        tv_sec: 0,
        tv_usec: 100,
    };
    let timer = libc::itimerval {
        it_interval: each,
        it_value: each,
    };
    // SAFETY: the handler makes no call that a signal handler must not make.
    unsafe {
        libc::signal(
            libc::SIGALRM,
            handler as extern "C" fn(c_int) as libc::sighandler_t,
        )
    };
    // SAFETY: both pointers are valid or null.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, core::ptr::null_mut()) };
    while COUNT.load(Ordering::Relaxed) < 1000 {
        let before = Instant::now().as_nanos();
        let seen = COUNT.load(Ordering::Relaxed);
        while COUNT.load(Ordering::Relaxed) == seen {
            core::hint::spin_loop();
        }
        let handled = NANOS.load(Ordering::Relaxed);
        let after = Instant::now().as_nanos();
        if !(before..=after).contains(&handled) {
            return 1;
        }
    }
    0
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    // SAFETY: abort(3) takes nothing and ends the process.
    unsafe { libc::abort() }
}
