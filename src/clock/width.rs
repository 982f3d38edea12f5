//! Adapters: a slot's function, made of one of another shape. A 32-bit symbol's numbers are widened while its
//! seconds are not negative (after January 2038 they are); a function without a symbol asks the clock.
//!
//! An adapter's error sends the caller to the system calls, which begin with the 64-bit ones. Only those of `time`, whose
//! caller looks for none, go there themselves.

use core::ptr;

use super::resolve::{CLOCK_GETTIME, deliver, kernel_time, resolve_shape};
use crate::arch::Shape;
use crate::arch::native::ABI;
use crate::error::Errno;
use crate::once::{ClockFn32, GettimeofdayFn32, OnceFn, TimeFn32};
use crate::types::{ClockId, Timespec, Timespec32, Timeval, Timeval32};

// The 32-bit symbols, each behind a slot of its own, born like the others with its resolver.
pub(super) static TIME32: OnceFn<TimeFn32> = OnceFn::new(first_time32);
pub(super) static GETTIMEOFDAY32: OnceFn<GettimeofdayFn32> = OnceFn::new(first_gettimeofday32);
pub(super) static CLOCK_GETTIME32: OnceFn<ClockFn32> = OnceFn::new(first_clock_gettime32);
pub(super) static CLOCK_GETRES32: OnceFn<ClockFn32> = OnceFn::new(first_clock_getres32);

/// `time` by the 32-bit symbol, then by the kernel.
#[inline(never)]
pub(super) unsafe extern "C" fn time(place: *mut i64) -> i64 {
    let time = TIME32.get();
    // SAFETY: the slot holds code of this signature, and a null pointer asks for nothing but the result.
    let seconds = unsafe { time(ptr::null_mut()) };
    if seconds >= 0 {
        return seconds.into();
    }
    // SAFETY: the caller's place is good.
    unsafe { kernel_time(place) }
}

/// `time` by `CLOCK_REALTIME_COARSE`: no counter is read, and it is the second that time(2) gives.
#[inline(never)]
pub(super) unsafe extern "C" fn time_by_clock(place: *mut i64) -> i64 {
    let mut now = Timespec::default();
    let clock_gettime = CLOCK_GETTIME.get();
    // SAFETY: the slot holds code of this signature, which writes to `now` alone.
    if unsafe { clock_gettime(ClockId::REALTIME_COARSE.as_raw(), &raw mut now) } == 0 {
        return now.tv_sec;
    }
    let last = if const { ABI.time.has(Shape::Time32) } { time } else { kernel_time };
    // SAFETY: the caller's place is good.
    unsafe { last(place) }
}

/// `gettimeofday` by the 32-bit symbol.
#[inline(never)]
pub(super) unsafe extern "C" fn gettimeofday(place: *mut Timeval, zone: *mut ()) -> i32 {
    let mut now = Timeval32::default();
    let gettimeofday = GETTIMEOFDAY32.get();
    // SAFETY: the slot holds code of this signature, which writes to `now` and the caller's `zone`.
    let result = unsafe { gettimeofday(&raw mut now, zone) };
    // SAFETY: the caller's place is good.
    unsafe { widen(result, now.tv_sec, Timespec::from(now).into(), place) }
}

/// `gettimeofday` by `CLOCK_REALTIME`.
#[inline(never)]
pub(super) unsafe extern "C" fn gettimeofday_by_clock(place: *mut Timeval, _: *mut ()) -> i32 {
    let mut now = Timespec::default();
    let clock_gettime = CLOCK_GETTIME.get();
    // SAFETY: the slot holds code of this signature, which writes to `now` alone.
    let result = unsafe { clock_gettime(ClockId::REALTIME.as_raw(), &raw mut now) };
    if result != 0 {
        return result;
    }
    // SAFETY: the caller's place is good.
    unsafe { deliver(Ok(now.into()), place) }
}

/// `clock_gettime` by the 32-bit symbol.
#[inline(never)]
pub(super) unsafe extern "C" fn clock_gettime(clock: i32, place: *mut Timespec) -> i32 {
    let mut now = Timespec32::default();
    let clock_gettime = CLOCK_GETTIME32.get();
    // SAFETY: the slot holds code of this signature, which writes to `now` alone.
    let result = unsafe { clock_gettime(clock, &raw mut now) };
    // SAFETY: the caller's place is good.
    unsafe { widen(result, now.tv_sec, now.into(), place) }
}

/// `clock_getres` by the 32-bit symbol.
#[inline(never)]
pub(super) unsafe extern "C" fn clock_getres(clock: i32, place: *mut Timespec) -> i32 {
    let mut resolution = Timespec32::default();
    let clock_getres = CLOCK_GETRES32.get();
    // SAFETY: the slot holds code of this signature, which writes to `resolution` alone.
    let result = unsafe { clock_getres(clock, &raw mut resolution) };
    // SAFETY: the caller's place is good.
    unsafe { widen(result, resolution.tv_sec, resolution.into(), place) }
}

/// Passes a result on, with the time in its wide form unless the seconds wrapped in January 2038.
///
/// # Safety
/// `place` must be good for a write.
unsafe fn widen<T>(result: i32, seconds: i32, wide: T, place: *mut T) -> i32 {
    if result != 0 {
        return result;
    }
    // SAFETY: the caller's duty.
    unsafe { deliver(if seconds < 0 { Err(Errno::EOVERFLOW) } else { Ok(wide) }, place) }
}

const ENOSYS: i32 = -Errno::ENOSYS.raw_os_error();

#[cold]
unsafe extern "C" fn first_time32(place: *mut i32) -> i32 {
    unsafe extern "C" fn missing(_: *mut i32) -> i32 {
        ENOSYS
    }
    let found = resolve_shape::<TimeFn32>(&ABI.time, Shape::Time32, missing);
    TIME32.set(found);
    // SAFETY: it is code of this signature; the caller's place is good.
    unsafe { found(place) }
}

#[cold]
unsafe extern "C" fn first_gettimeofday32(time: *mut Timeval32, zone: *mut ()) -> i32 {
    unsafe extern "C" fn missing(_: *mut Timeval32, _: *mut ()) -> i32 {
        ENOSYS
    }
    let found = resolve_shape::<GettimeofdayFn32>(&ABI.gettimeofday, Shape::Timeval32, missing);
    GETTIMEOFDAY32.set(found);
    // SAFETY: it is code of this signature; the caller's places are good.
    unsafe { found(time, zone) }
}

#[cold]
unsafe extern "C" fn first_clock_gettime32(clock: i32, time: *mut Timespec32) -> i32 {
    let found = resolve_shape::<ClockFn32>(&ABI.clock_gettime, Shape::Timespec32, missing_clock);
    CLOCK_GETTIME32.set(found);
    // SAFETY: it is code of this signature; the caller's place is good.
    unsafe { found(clock, time) }
}

#[cold]
unsafe extern "C" fn first_clock_getres32(clock: i32, resolution: *mut Timespec32) -> i32 {
    let found = resolve_shape::<ClockFn32>(&ABI.clock_getres, Shape::Timespec32, missing_clock);
    CLOCK_GETRES32.set(found);
    // SAFETY: it is code of this signature; the caller's place is good.
    unsafe { found(clock, resolution) }
}

unsafe extern "C" fn missing_clock(_: i32, _: *mut Timespec32) -> i32 {
    ENOSYS
}
