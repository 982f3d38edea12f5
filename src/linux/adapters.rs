//! Functions for the slots that call symbols of another signature.
//!
//! A 32-bit symbol's time is widened unless it may be after January 2038. If an adapter returns an
//! error, the caller asks the kernel; a missing symbol is `ENOSYS`. The adapters of `time` ask the
//! kernel themselves, because the callers of `time` do not test its result.
//!
//! # Safety
//!
//! The callers make the promises that the kernel's functions require: each pointer is valid for
//! writes.

use core::ptr;

use super::rseq;
use super::slot::{ClockFn, ClockFn32, GetcpuFn, GettimeofdayFn32, Symbol, TimeFn32};
use super::syscall::{self, earliest};
use crate::errno::Errno;
use crate::types::{ClockId, Timespec, Timespec32, Timeval, Timeval32};

pub(super) static CLOCK_GETTIME: Symbol<ClockFn> = Symbol::none();
pub(super) static CLOCK_GETTIME32: Symbol<ClockFn32> = Symbol::none();
pub(super) static CLOCK_GETRES32: Symbol<ClockFn32> = Symbol::none();
pub(super) static GETTIMEOFDAY32: Symbol<GettimeofdayFn32> = Symbol::none();
pub(super) static GETCPU: Symbol<GetcpuFn> = Symbol::none();
pub(super) static TIME32: Symbol<TimeFn32> = Symbol::none();

const ENOSYS: i32 = -Errno::ENOSYS.raw_os_error();
const EOVERFLOW: i32 = -Errno::EOVERFLOW.raw_os_error();

/// `time` from `CLOCK_REALTIME_COARSE`, which has the second of time(2) and reads no counter.
pub(super) extern "C" fn time_from_clock_gettime(out: *mut i64) -> i64 {
    let mut now = Timespec::default();
    let result = clock_gettime(ClockId::REALTIME_COARSE, &mut now);
    if result == 0 { now.tv_sec } else { syscall::slot_time(out) }
}

/// `time` from the 32-bit `clock_gettime`.
pub(super) extern "C" fn time_from_clock_gettime32(out: *mut i64) -> i64 {
    let mut now = Timespec::default();
    // SAFETY: `now` is valid for writes.
    let result = unsafe { clock_gettime_from_32(ClockId::REALTIME_COARSE.as_raw(), &raw mut now) };
    if result == 0 { now.tv_sec } else { syscall::slot_time(out) }
}

/// `time` from the 32-bit `time`.
pub(super) extern "C" fn time_from_32(out: *mut i64) -> i64 {
    if let Some(time) = TIME32.get() {
        // SAFETY: the symbol is time(2)'s, which accepts a null pointer.
        let seconds = i64::from(unsafe { time(ptr::null_mut()) });
        if seconds >= earliest(ClockId::REALTIME) {
            return seconds;
        }
    }
    syscall::slot_time(out)
}

/// `gettimeofday` from `CLOCK_REALTIME`.
pub(super) unsafe extern "C" fn gettimeofday_from_clock_gettime(out: *mut Timeval, _: *mut ()) -> i32 {
    let mut now = Timespec::default();
    let result = clock_gettime(ClockId::REALTIME, &mut now);
    // SAFETY: the caller promises that `out` is valid for writes.
    unsafe { out.write(now.into()) };
    result
}

/// `gettimeofday` from the 32-bit `gettimeofday`.
pub(super) unsafe extern "C" fn gettimeofday_from_32(out: *mut Timeval, zone: *mut ()) -> i32 {
    let Some(gettimeofday) = GETTIMEOFDAY32.get() else { return ENOSYS };
    let mut now = Timeval32::default();
    // SAFETY: the symbol is gettimeofday(2)'s. `now` is valid for writes, and the caller promises
    // that `zone` is null or valid for writes.
    let result = unsafe { gettimeofday(&raw mut now, zone) };
    // SAFETY: the caller promises that `out` is valid for writes.
    unsafe { out.write(Timespec::from(now).into()) };
    checked(result, now.tv_sec, earliest(ClockId::REALTIME))
}

/// `clock_gettime` from the 32-bit `clock_gettime`.
pub(super) unsafe extern "C" fn clock_gettime_from_32(clock: i32, out: *mut Timespec) -> i32 {
    // SAFETY: the caller promises that `out` is valid for writes.
    unsafe { widened(&CLOCK_GETTIME32, clock, out, earliest(ClockId::from_raw(clock))) }
}

/// `clock_getres` from the 32-bit `clock_getres`.
pub(super) unsafe extern "C" fn clock_getres_from_32(clock: i32, out: *mut Timespec) -> i32 {
    // SAFETY: the caller promises that `out` is valid for writes.
    unsafe { widened(&CLOCK_GETRES32, clock, out, 0) }
}

/// `getcpu` from the thread's rseq area. A thread without one asks the vDSO or the kernel.
pub(super) unsafe extern "C" fn getcpu_from_rseq(
    cpu_out: *mut u32,
    node_out: *mut u32,
    unused: *mut (),
) -> i32 {
    let Some((cpu, node)) = rseq::cpu_and_node() else {
        let getcpu = GETCPU.get().unwrap_or(syscall::slot_getcpu);
        // SAFETY: the function is getcpu(2)'s, and the caller's promises are the same.
        return unsafe { getcpu(cpu_out, node_out, unused) };
    };
    // SAFETY: the caller promises that `cpu_out` is valid for writes.
    unsafe { cpu_out.write(cpu) };
    // SAFETY: the caller promises that `node_out` is valid for writes.
    unsafe { node_out.write(node) };
    0
}

/// Calls the vDSO's 64-bit `clock_gettime`.
fn clock_gettime(clock: ClockId, out: &mut Timespec) -> i32 {
    let Some(clock_gettime) = CLOCK_GETTIME.get() else { return ENOSYS };
    // SAFETY: the symbol is clock_gettime(2)'s, and `out` is valid for writes.
    unsafe { clock_gettime(clock.as_raw(), out) }
}

/// Calls a 32-bit function of a clock and widens its answer.
///
/// # Safety
///
/// `out` must be valid for writes.
unsafe fn widened(symbol: &Symbol<ClockFn32>, clock: i32, out: *mut Timespec, earliest: i64) -> i32 {
    let Some(function) = symbol.get() else { return ENOSYS };
    let mut time = Timespec32::default();
    // SAFETY: the symbol is clock_gettime(2)'s or clock_getres(2)'s, and `time` is valid for
    // writes.
    let result = unsafe { function(clock, &raw mut time) };
    // SAFETY: the caller promises that `out` is valid for writes.
    unsafe { out.write(time.into()) };
    checked(result, time.tv_sec, earliest)
}

/// Returns the result, or `EOVERFLOW` if the 32-bit seconds may be after January 2038.
fn checked(result: i32, seconds: i32, earliest: i64) -> i32 {
    if result == 0 && i64::from(seconds) < earliest { EOVERFLOW } else { result }
}
