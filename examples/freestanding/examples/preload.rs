//! A library for LD_PRELOAD that moves the wall clock of a program an hour ahead.
//!
//! The library replaces libc's clock functions with functions that call vdso-time. This works
//! because vdso-time does not call libc's clock functions. If the replacements read std's or libc's
//! clocks instead, they would call themselves again, without end.
//!
//! A program can call the replacements before any constructor has run, and in signal handlers.
//!
//! Such a library can also replace getauxval. If its getauxval calls vdso-time, do not turn on the
//! feature `libc` of vdso-time: with this feature, vdso-time calls getauxval, and the two functions
//! would call each other without end.

#![no_std]

use core::ffi::c_int;
use core::panic::PanicInfo;

use vdso_time::ClockId;

/// The number of seconds by which the wall clock is ahead.
const AHEAD: i64 = 3600;

/// The clocks that are moved.
const WALL_CLOCKS: [c_int; 4] = [
    libc::CLOCK_REALTIME,
    libc::CLOCK_REALTIME_COARSE,
    libc::CLOCK_REALTIME_ALARM,
    libc::CLOCK_TAI,
];

/// Replaces clock_gettime(2).
///
/// # Safety
/// `time` must be null or an address to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: c_int, time: *mut libc::timespec) -> c_int {
    let ahead = if WALL_CLOCKS.contains(&clock) {
        AHEAD
    } else {
        0
    };
    match vdso_time::clock_gettime(ClockId::from_raw(clock)) {
        Ok(_) if time.is_null() => failed(libc::EFAULT),
        Ok(now) => {
            let moved = libc::timespec {
                tv_sec: (now.tv_sec + ahead) as _,
                tv_nsec: now.tv_nsec as _,
            };
            // SAFETY: the caller passes an address to write to.
            unsafe { time.write(moved) };
            0
        }
        Err(error) => failed(error.raw_os_error()),
    }
}

/// Replaces gettimeofday(2). Like libc's function, it writes a time zone of 0.
///
/// # Safety
/// `time` and `zone` must be null or addresses to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gettimeofday(time: *mut libc::timeval, zone: *mut [c_int; 2]) -> c_int {
    if !zone.is_null() {
        // SAFETY: the caller passes an address to write to.
        unsafe { zone.write([0; 2]) };
    }
    match vdso_time::gettimeofday() {
        Ok(now) if !time.is_null() => {
            let moved = libc::timeval {
                tv_sec: (now.tv_sec + AHEAD) as _,
                tv_usec: now.tv_usec as _,
            };
            // SAFETY: the caller passes an address to write to.
            unsafe { time.write(moved) };
            0
        }
        Ok(_) => 0,
        Err(error) => failed(error.raw_os_error()),
    }
}

/// Replaces time(2).
///
/// # Safety
/// `seconds` must be null or an address to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn time(seconds: *mut libc::time_t) -> libc::time_t {
    let moved = match vdso_time::try_time() {
        Ok(now) => (now + AHEAD) as libc::time_t,
        Err(error) => return failed(error.raw_os_error()).into(),
    };
    if !seconds.is_null() {
        // SAFETY: the caller passes an address to write to.
        unsafe { seconds.write(moved) };
    }
    moved
}

/// Sets errno and returns -1.
fn failed(error: c_int) -> c_int {
    // SAFETY: the function has no precondition.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: this thread's errno is valid for writes.
    unsafe { errno.write(error) };
    -1
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    // SAFETY: abort(3) takes nothing and ends the process.
    unsafe { libc::abort() }
}
