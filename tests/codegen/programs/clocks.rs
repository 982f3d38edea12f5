//! A program that is linked dynamically with libc. It prints seconds, each on a line: read before
//! any constructor ran, then by libc's three functions, the last one of two clocks, then by the
//! crate, which calls the vDSO itself.

#![no_main]
#![allow(missing_docs, unsafe_code, reason = "this is only run")]

use std::ffi::{c_int, c_long};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI64, Ordering};

unsafe extern "C" {
    fn time(seconds: *mut c_long) -> c_long;
    fn gettimeofday(time: *mut [c_long; 2], zone: *mut [c_int; 2]) -> c_int;
    fn clock_gettime(clock: c_int, time: *mut [c_long; 2]) -> c_int;
}

const CLOCK_REALTIME: c_int = 0;
const CLOCK_REALTIME_COARSE: c_int = 5;

static EARLY: AtomicI64 = AtomicI64::new(0);

/// The dynamic linker calls it before the constructors of all libraries.
#[used]
#[unsafe(link_section = ".preinit_array")]
static PREINIT: extern "C" fn() = read_early;

extern "C" fn read_early() {
    // SAFETY: null is allowed.
    EARLY.store(i64::from(unsafe { time(null_mut()) }), Ordering::Relaxed);
}

#[unsafe(no_mangle)]
extern "C" fn main() -> c_int {
    let mut day = [0; 2];
    let mut wall = [0; 2];
    let mut coarse = [0; 2];
    // SAFETY: null is allowed.
    let seconds = unsafe { time(null_mut()) };
    // SAFETY: the array has the layout of `struct timeval`, and null is allowed.
    let mut status = unsafe { gettimeofday(&raw mut day, null_mut()) };
    // SAFETY: the array has the layout of `struct timespec`.
    status |= unsafe { clock_gettime(CLOCK_REALTIME, &raw mut wall) };
    // SAFETY: the array has the layout of `struct timespec`.
    status |= unsafe { clock_gettime(CLOCK_REALTIME_COARSE, &raw mut coarse) };
    println!(
        "{}\n{seconds}\n{}\n{}\n{}",
        EARLY.load(Ordering::Relaxed),
        day[0],
        wall[0],
        coarse[0]
    );
    println!("{}", vdso_time::time());
    status
}
