//! A library for LD_PRELOAD: the wall clock of the program is an hour ahead.
//!
//! vdso-time does not call libc's clock functions, so a function that takes their place can call
//! vdso-time. Calling std here, or libc's clock_gettime, would call this function again, without
//! end. The program can call it before any constructor has run, and in signal handlers.
//!
//! Do not turn on the feature `libc` of vdso-time in a library that takes the place of getauxval.

#![no_std]

use core::ffi::c_int;
use core::panic::PanicInfo;

use vdso_time::ClockId;

/// clock_gettime(2).
///
/// # Safety
/// `time` must be null or an address to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: c_int, time: *mut libc::timespec) -> c_int {
    let ahead = if clock == libc::CLOCK_REALTIME { 3600 } else { 0 };
    let error = match vdso_time::clock_gettime(ClockId::from_raw(clock)) {
        Ok(_) if time.is_null() => libc::EFAULT,
        Ok(now) => {
            let moved = libc::timespec { tv_sec: now.tv_sec as _, tv_nsec: now.tv_nsec as _ };
            let moved = libc::timespec { tv_sec: moved.tv_sec + ahead, ..moved };
            // SAFETY: the caller passes an address to write to.
            unsafe { time.write(moved) };
            return 0;
        }
        Err(error) => error.raw_os_error(),
    };
    // SAFETY: libc has an address for each thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the address is this thread's.
    unsafe { errno.write(error) };
    -1
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    // SAFETY: abort(3) takes nothing and ends the process.
    unsafe { libc::abort() }
}
