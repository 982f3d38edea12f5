//! Functions for the slots that call symbols of another signature.
//!
//! A 32-bit symbol's time is widened unless it may be after January 2038. If an adapter returns an
//! error, the caller asks the kernel. The adapters of `time` ask the kernel themselves, because the
//! callers of `time` do not test its result.

use super::slot::{ClockFn, ClockFn32, GettimeofdayFn32, Slot, TimeFn32};
use super::syscall::{self, earliest};
use crate::errno::Errno;
use crate::types::{ClockId, Timespec, Timespec32, Timeval, Timeval32};

const ENOSYS: i32 = -Errno::ENOSYS.raw_os_error();
const EOVERFLOW: i32 = -Errno::EOVERFLOW.raw_os_error();

// The symbols that the adapters call. Until there is one, the answer is `ENOSYS`, or -1 from time.
pub(super) static CLOCK_GETTIME: Slot<ClockFn> = Slot::new(missing_clock);
pub(super) static CLOCK_GETTIME32: Slot<ClockFn32> = Slot::new(missing_clock32);
pub(super) static CLOCK_GETRES32: Slot<ClockFn32> = Slot::new(missing_clock32);
pub(super) static GETTIMEOFDAY32: Slot<GettimeofdayFn32> = Slot::new(missing_gettimeofday32);
pub(super) static TIME32: Slot<TimeFn32> = Slot::new(missing_time32);

extern "C" fn missing_clock(_: ClockId, _: &mut Timespec) -> i32 {
    ENOSYS
}

extern "C" fn missing_clock32(_: ClockId, _: &mut Timespec32) -> i32 {
    ENOSYS
}

extern "C" fn missing_gettimeofday32(_: &mut Timeval32, _: Option<&mut ()>) -> i32 {
    ENOSYS
}

extern "C" fn missing_time32(_: Option<&mut i32>) -> i32 {
    -1
}

/// `time` from `CLOCK_REALTIME_COARSE`, which has the second of time(2) and reads no counter.
pub(super) extern "C" fn time_from_clock_gettime(_: Option<&mut i64>) -> i64 {
    coarse_second(CLOCK_GETTIME.get())
}

/// `time` from the 32-bit `clock_gettime`.
pub(super) extern "C" fn time_from_clock_gettime32(_: Option<&mut i64>) -> i64 {
    coarse_second(clock_gettime_from_32)
}

fn coarse_second(clock_gettime: ClockFn) -> i64 {
    let mut now = Timespec::default();
    let result = clock_gettime(ClockId::REALTIME_COARSE, &mut now);
    if result == 0 { now.tv_sec } else { syscall::slot_time(None) }
}

/// `time` from the 32-bit `time`.
pub(super) extern "C" fn time_from_32(_: Option<&mut i64>) -> i64 {
    let seconds = i64::from(TIME32.get()(None));
    if seconds >= earliest(ClockId::REALTIME) { seconds } else { syscall::slot_time(None) }
}

/// `gettimeofday` from `CLOCK_REALTIME`.
pub(super) extern "C" fn gettimeofday_from_clock_gettime(out: &mut Timeval, _: Option<&mut ()>) -> i32 {
    let mut now = Timespec::default();
    let result = CLOCK_GETTIME.get()(ClockId::REALTIME, &mut now);
    // The kernel's nanoseconds fit in 32 bits. A 32-bit CPU calls a function to divide 64.
    *out = Timeval { tv_sec: now.tv_sec, tv_usec: (now.tv_nsec as u32 / 1000).into() };
    result
}

/// `gettimeofday` from the 32-bit `gettimeofday`.
pub(super) extern "C" fn gettimeofday_from_32(out: &mut Timeval, zone: Option<&mut ()>) -> i32 {
    let mut now = Timeval32::default();
    let result = GETTIMEOFDAY32.get()(&mut now, zone);
    *out = now.into();
    checked(result, now.tv_sec, earliest(ClockId::REALTIME))
}

/// `clock_gettime` from the 32-bit `clock_gettime`.
pub(super) extern "C" fn clock_gettime_from_32(clock: ClockId, out: &mut Timespec) -> i32 {
    widened(CLOCK_GETTIME32.get(), clock, out, earliest(clock))
}

/// `clock_getres` from the 32-bit `clock_getres`.
pub(super) extern "C" fn clock_getres_from_32(clock: ClockId, out: &mut Timespec) -> i32 {
    widened(CLOCK_GETRES32.get(), clock, out, 0)
}

/// Calls a 32-bit function of a clock and widens its answer.
fn widened(function: ClockFn32, clock: ClockId, out: &mut Timespec, earliest: i64) -> i32 {
    let mut time = Timespec32::default();
    let result = function(clock, &mut time);
    *out = time.into();
    checked(result, time.tv_sec, earliest)
}

/// Returns the result, or `EOVERFLOW` if the 32-bit seconds may be after January 2038.
fn checked(result: i32, seconds: i32, earliest: i64) -> i32 {
    if result == 0 && i64::from(seconds) < earliest { EOVERFLOW } else { result }
}
