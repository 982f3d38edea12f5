//! Functions for the slots, made from symbols of another signature.
//!
//! A 32-bit symbol's time is widened unless it may be after January 2038. A function without a symbol of
//! its own reads the clock. An error (`ENOSYS` if the symbol is missing) makes the caller ask the kernel;
//! the adapters of `time`, whose caller does not look for errors, ask it themselves.
//!
//! # Safety
//! The callers promise what those of the kernel's functions do: each pointer is good for a write.

use core::ptr;

use super::slot::{ClockFn, ClockFn32, GettimeofdayFn32, Symbol, TimeFn32};
use super::syscall::{self, earliest};
use crate::errno::Errno;
use crate::types::{ClockId, Timespec, Timespec32, Timeval, Timeval32};

pub(super) static CLOCK_GETTIME: Symbol<ClockFn> = Symbol::none();
pub(super) static CLOCK_GETTIME32: Symbol<ClockFn32> = Symbol::none();
pub(super) static CLOCK_GETRES32: Symbol<ClockFn32> = Symbol::none();
pub(super) static GETTIMEOFDAY32: Symbol<GettimeofdayFn32> = Symbol::none();
pub(super) static TIME32: Symbol<TimeFn32> = Symbol::none();

const ENOSYS: i32 = -Errno::ENOSYS.raw_os_error();
const EOVERFLOW: i32 = -Errno::EOVERFLOW.raw_os_error();

/// `time` from `CLOCK_REALTIME_COARSE`: no counter is read, and time(2) has the same second.
pub(super) unsafe extern "C" fn time_from_clock_gettime(out: *mut i64) -> i64 {
    let mut now = Timespec::default();
    let result = clock_gettime(ClockId::REALTIME_COARSE, &mut now);
    // SAFETY: the caller's pointer is good for what `slot_time` does.
    if result == 0 { now.tv_sec } else { unsafe { syscall::slot_time(out) } }
}

/// The same from the 32-bit symbol.
pub(super) unsafe extern "C" fn time_from_clock_gettime32(out: *mut i64) -> i64 {
    let mut now = Timespec::default();
    // SAFETY: `now` is good for a write.
    let result = unsafe { clock_gettime_from_32(ClockId::REALTIME_COARSE.as_raw(), &raw mut now) };
    // SAFETY: the caller's pointer is good for what `slot_time` does.
    if result == 0 { now.tv_sec } else { unsafe { syscall::slot_time(out) } }
}

/// `time` from the 32-bit symbol.
pub(super) unsafe extern "C" fn time_from_32(out: *mut i64) -> i64 {
    if let Some(time) = TIME32.get() {
        // SAFETY: the symbol has this signature, and accepts a null pointer.
        let seconds = i64::from(unsafe { time(ptr::null_mut()) });
        if seconds >= earliest(ClockId::REALTIME) {
            return seconds;
        }
    }
    // SAFETY: the caller's pointer is good for what `slot_time` does.
    unsafe { syscall::slot_time(out) }
}

/// `gettimeofday` from `CLOCK_REALTIME`.
pub(super) unsafe extern "C" fn gettimeofday_from_clock_gettime(out: *mut Timeval, _: *mut ()) -> i32 {
    let mut now = Timespec::default();
    let result = clock_gettime(ClockId::REALTIME, &mut now);
    // SAFETY: the caller promises that `out` is good for a write.
    unsafe { out.write(now.into()) };
    result
}

/// `gettimeofday` from the 32-bit symbol.
pub(super) unsafe extern "C" fn gettimeofday_from_32(out: *mut Timeval, zone: *mut ()) -> i32 {
    let Some(gettimeofday) = GETTIMEOFDAY32.get() else { return ENOSYS };
    let mut now = Timeval32::default();
    // SAFETY: the symbol has this signature; `now` is good for a write, and so is the caller's `zone`.
    let result = unsafe { gettimeofday(&raw mut now, zone) };
    // SAFETY: the caller promises that `out` is good for a write.
    unsafe { out.write(Timespec::from(now).into()) };
    unless_early(result, now.tv_sec, earliest(ClockId::REALTIME))
}

/// `clock_gettime` from the 32-bit symbol.
pub(super) unsafe extern "C" fn clock_gettime_from_32(clock: i32, out: *mut Timespec) -> i32 {
    // SAFETY: the caller promises that `out` is good for a write.
    unsafe { widened(&CLOCK_GETTIME32, clock, out, earliest(ClockId::from_raw(clock))) }
}

/// `clock_getres` from the 32-bit symbol.
pub(super) unsafe extern "C" fn clock_getres_from_32(clock: i32, out: *mut Timespec) -> i32 {
    // SAFETY: the caller promises that `out` is good for a write.
    unsafe { widened(&CLOCK_GETRES32, clock, out, 0) }
}

/// The 64-bit `clock_gettime` of the vDSO.
fn clock_gettime(clock: ClockId, out: &mut Timespec) -> i32 {
    let Some(clock_gettime) = CLOCK_GETTIME.get() else { return ENOSYS };
    // SAFETY: the symbol has this signature, and `out` is good for a write.
    unsafe { clock_gettime(clock.as_raw(), out) }
}

/// Calls a 32-bit symbol of a clock function, and widens its answer.
///
/// # Safety
/// `out` must be good for a write.
unsafe fn widened(symbol: &Symbol<ClockFn32>, clock: i32, out: *mut Timespec, earliest: i64) -> i32 {
    let Some(function) = symbol.get() else { return ENOSYS };
    let mut time = Timespec32::default();
    // SAFETY: the symbol has this signature, and `time` is good for a write.
    let result = unsafe { function(clock, &raw mut time) };
    // SAFETY: the caller promises that `out` is good for a write.
    unsafe { out.write(time.into()) };
    unless_early(result, time.tv_sec, earliest)
}

/// A result, but `EOVERFLOW` for 32-bit seconds that may be of a time after January 2038.
fn unless_early(result: i32, seconds: i32, earliest: i64) -> i32 {
    if result == 0 && i64::from(seconds) < earliest { EOVERFLOW } else { result }
}
