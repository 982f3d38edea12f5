//! libc's functions, called as by a program that minds errors.

#![allow(unsafe_code, reason = "functions of libc")]

use std::ffi::c_long;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::ptr;

use vdso_time::ClockId;

use super::keep::Keep;

impl Keep for libc::timespec {
    #[inline]
    fn keep(self) {
        black_box(self.tv_sec);
        black_box(self.tv_nsec);
    }
}

impl Keep for libc::timeval {
    #[inline]
    fn keep(self) {
        black_box(self.tv_sec);
        black_box(self.tv_usec);
    }
}

/// Makes a call, and keeps its answer.
///
/// # Safety
/// A call that returns 0 must have written to its place.
#[inline]
unsafe fn ask<T: Keep>(call: impl FnOnce(*mut T) -> c_long) {
    let mut place = MaybeUninit::uninit();
    if call(place.as_mut_ptr()) == 0 {
        // SAFETY: the caller's duty.
        unsafe { place.assume_init() }.keep();
    }
}

/// clock_gettime(3)
#[inline]
pub fn clock_gettime(clock: ClockId) {
    // SAFETY: libc writes the time to the place.
    let call = |place| c_long::from(unsafe { libc::clock_gettime(clock.as_raw(), place) });
    // SAFETY: it says 0 when it did.
    unsafe { ask::<libc::timespec>(call) };
}

/// clock_getres(3)
#[inline]
pub fn clock_getres(clock: ClockId) {
    // SAFETY: libc writes the resolution to the place.
    let call = |place| c_long::from(unsafe { libc::clock_getres(clock.as_raw(), place) });
    // SAFETY: it says 0 when it did.
    unsafe { ask::<libc::timespec>(call) };
}

/// clock_gettime or clock_getres by their number, of `CLOCK_MONOTONIC`, whose numbers fit in 32 bits as well.
#[inline]
pub fn syscall_clock(number: c_long) {
    // SAFETY: the kernel writes two `long` to the place.
    let call = |place: *mut [c_long; 2]| unsafe { libc::syscall(number, libc::CLOCK_MONOTONIC, place) };
    // SAFETY: it says 0 when it did.
    unsafe { ask(call) };
}

/// gettimeofday(3)
#[inline]
pub fn gettimeofday() {
    // SAFETY: libc writes the time to the place, and nothing to a null one.
    let call = |place| c_long::from(unsafe { libc::gettimeofday(place, ptr::null_mut()) });
    // SAFETY: it says 0 when it did.
    unsafe { ask::<libc::timeval>(call) };
}

/// gettimeofday(2), by its number.
#[inline]
pub fn syscall_gettimeofday() {
    let zone = ptr::null_mut::<()>();
    // SAFETY: the kernel writes two `long` to the place, and nothing to a null one.
    let call = |place: *mut [c_long; 2]| unsafe { libc::syscall(libc::SYS_gettimeofday, place, zone) };
    // SAFETY: it says 0 when it did.
    unsafe { ask(call) };
}

/// time(3)
#[inline]
pub fn time() {
    // SAFETY: a null pointer asks for nothing but the result.
    black_box(unsafe { libc::time(ptr::null_mut()) });
}

/// time(2), by its number.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
#[inline]
pub fn syscall_time() {
    // SAFETY: a null pointer asks for nothing but the result.
    black_box(unsafe { libc::syscall(libc::SYS_time, ptr::null_mut::<()>()) });
}

/// The CPU alone: libc does not tell the node.
#[inline]
pub fn getcpu() {
    // SAFETY: the function has no precondition.
    black_box(unsafe { libc::sched_getcpu() });
}
