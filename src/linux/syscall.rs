//! System calls with the signatures of the public functions, and the same with those of the slots.
//!
//! A function may have several system calls (see [`Function`]). Each call of a function tries them
//! in order from the first. No failure is remembered, because it may be due to the thread's
//! sandbox.

#![allow(unsafe_code, reason = "one block for each system call")]

use super::native::{self, ABI};
use crate::arch::{Function, Shape, Syscall, TIME32_FIRST};
use crate::errno::Errno;
use crate::types::{ClockId, Cpu, Timespec, Timespec32, Timeval};

/// Returns the seconds since the Epoch from the kernel.
///
/// They are those of `CLOCK_REALTIME_COARSE`, as in time(2).
///
/// # Errors
///
/// - The first error other than `ENOSYS`, if every system call fails.
/// - `EOVERFLOW` after January 2038, if only 32-bit system calls answer.
pub fn time() -> Result<i64, Errno> {
    Ok(ask(&ABI.time, &Query::wall(ClockId::REALTIME_COARSE))?.tv_sec)
}

/// Returns the time since the Epoch in microseconds from the kernel.
///
/// # Errors
///
/// Those of [`time`].
pub fn gettimeofday() -> Result<Timeval, Errno> {
    Ok(ask(&ABI.gettimeofday, &Query::wall(ClockId::REALTIME))?.into())
}

/// Returns the time of a clock from the kernel.
///
/// # Errors
///
/// - `EINVAL`: the kernel has no such clock.
/// - The driver of a clock may return errors of its own.
/// - Otherwise those of [`time`].
pub fn clock_gettime(clock: ClockId) -> Result<Timespec, Errno> {
    ask(&ABI.clock_gettime, &Query { clock, is_callers: true, earliest: earliest(clock) })
}

/// Returns the resolution of a clock from the kernel.
///
/// # Errors
///
/// Those of [`clock_gettime`].
pub fn clock_getres(clock: ClockId) -> Result<Timespec, Errno> {
    ask(&ABI.clock_getres, &Query { clock, is_callers: true, earliest: 0 })
}

/// Returns the CPU and the NUMA node on which the thread runs, from the kernel.
///
/// # Errors
///
/// The error of a sandbox.
pub fn getcpu() -> Result<Cpu, Errno> {
    const NUMBER: u32 = ABI.getcpu.syscalls[0].number;
    let (mut cpu, mut node) = (0_u32, 0_u32);
    let args = [(&raw mut cpu).expose_provenance(), (&raw mut node).expose_provenance(), 0, 0, 0];
    // SAFETY: getcpu(2) writes two `u32`, to `cpu` and to `node`.
    check(unsafe { native::syscall(NUMBER, args) })?;
    Ok(Cpu { cpu, node })
}

/// What the system calls of a function are asked for.
struct Query {
    clock: ClockId,
    /// The caller chose the clock. Then `EINVAL` means that it does not exist, and is final.
    is_callers: bool,
    /// The first second that a 32-bit answer may have.
    earliest: i64,
}

impl Query {
    const fn wall(clock: ClockId) -> Self {
        Self { clock, is_callers: false, earliest: earliest(clock) }
    }
}

/// Returns the first second of a clock that is believed if it has 32 bits.
///
/// After February 2106, 32-bit seconds count from 1970 again. So a wall clock's second before 2026,
/// which is before this code was written, is not believed. A negative number is a time after
/// January 2038.
pub(crate) const fn earliest(clock: ClockId) -> i64 {
    const Y2026: i64 = 1_767_225_600;
    match clock {
        ClockId::REALTIME | ClockId::REALTIME_COARSE | ClockId::REALTIME_ALARM | ClockId::TAI => Y2026,
        _ => 0,
    }
}

/// Makes the system calls of a function until one answers.
///
/// After an error it makes the next one, except after `EINVAL` for a clock of the caller's.
#[inline] // the number and the shape of the first call are constants then
fn ask(function: &Function, query: &Query) -> Result<Timespec, Errno> {
    let mut calls = function.syscalls_in_order(TIME32_FIRST);
    let first = calls.next().map(|call| answer(call, query, Errno::ENOSYS));
    match first {
        Some(Err(error)) => ask_others(calls, query, error),
        answer => answer.unwrap_or(Err(Errno::ENOSYS)),
    }
}

/// Makes the further system calls after the first one was refused.
#[cold]
fn ask_others(
    calls: impl Iterator<Item = &'static Syscall>,
    query: &Query,
    mut refusal: Errno,
) -> Result<Timespec, Errno> {
    let is_final = |error| query.is_callers && error == Errno::EINVAL;
    for call in calls {
        let may_be_tried = !may_be_killed_for(call) || matches!(refusal, Errno::ENOSYS | Errno::EOVERFLOW);
        if is_final(refusal) || !may_be_tried {
            break;
        }
        match answer(call, query, refusal) {
            Ok(time) => return Ok(time),
            Err(error) if refusal == Errno::ENOSYS || error == Errno::EOVERFLOW || is_final(error) => {
                refusal = error;
            }
            Err(_) => {}
        }
    }
    Err(refusal)
}

/// Makes one system call, given the error of those before.
#[inline]
fn answer(call: &Syscall, query: &Query, refusal: Errno) -> Result<Timespec, Errno> {
    match read(call, query.clock) {
        Ok(time) if is_time32(call) && !is_believed(time.tv_sec, query.earliest, refusal) => {
            Err(Errno::EOVERFLOW)
        }
        answer => answer,
    }
}

/// Returns whether 32-bit Android may kill for a system call. Such a call is made only after
/// January 2038, or if the kernel has no 32-bit call.
fn may_be_killed_for(call: &Syscall) -> bool {
    (const { TIME32_FIRST && cfg!(target_pointer_width = "32") }) && !call.shape.is_time32()
}

/// Returns whether 32-bit seconds are right, given the error of the 64-bit system calls before.
///
/// Seconds before `earliest` are right only if there are no 64-bit calls. A kernel before Linux 5.1
/// has none, and cannot be set to a time after 2038.
fn is_believed(seconds: i64, earliest: i64, refusal: Errno) -> bool {
    seconds >= earliest || (seconds >= 0 && refusal == Errno::ENOSYS)
}

/// Returns whether the seconds of a system call end in January 2038. The compiler removes the code
/// for such calls from 64-bit programs.
fn is_time32(call: &Syscall) -> bool {
    (const { cfg!(target_pointer_width = "32") }) && call.shape.is_time32()
}

/// Makes one system call of any shape. All write the seconds and a fraction of a second.
fn read(call: &Syscall, clock: ClockId) -> Result<Timespec, Errno> {
    let mut time = Timespec::default();
    let out = (&raw mut time).expose_provenance();
    let args = match call.shape {
        Shape::Timespec64 | Shape::Timespec32 => [clock.as_raw() as usize, out, 0, 0, 0],
        _ => [out, 0, 0, 0, 0],
    };
    // SAFETY: a call of any shape writes at most two numbers of 64 bits, to `time`.
    check(unsafe { native::syscall(call.number, args) })?;
    if is_time32(call) {
        let numbers = (&raw const time).cast::<Timespec32>();
        // SAFETY: `time` is larger, and every bit pattern of its bytes is a pair of numbers.
        time = unsafe { numbers.read() }.into();
    }
    if matches!(call.shape, Shape::Timeval64 | Shape::Timeval32) {
        time.tv_nsec = time.tv_nsec.wrapping_mul(1000);
    }
    Ok(time)
}

/// Makes a system call.
///
/// # Errors
///
/// The kernel's.
///
/// # Safety
///
/// The system call must be sound with these arguments.
pub unsafe fn checked(number: u32, args: [usize; 5]) -> Result<usize, Errno> {
    // SAFETY: the caller promises that the call is sound.
    check(unsafe { native::syscall(number, args) })
}

/// Converts a result. One in `-4095..=-1` is an error.
pub(super) fn check(result: isize) -> Result<usize, Errno> {
    if (-4095..=-1).contains(&result) {
        return Err(Errno::from_raw_os_error(-result as i32).unwrap_or(Errno::EINVAL));
    }
    Ok(result as usize)
}

// The same with the signatures of the slots: 0 or a negated error number, and -1 from `time`.

pub(crate) extern "C" fn slot_time(_: Option<&mut i64>) -> i64 {
    time().unwrap_or(-1)
}

pub(crate) extern "C" fn slot_gettimeofday(out: &mut Timeval, _: Option<&mut ()>) -> i32 {
    raw(gettimeofday().map(|time| *out = time))
}

pub(crate) extern "C" fn slot_clock_gettime(clock: ClockId, out: &mut Timespec) -> i32 {
    raw(clock_gettime(clock).map(|time| *out = time))
}

pub(crate) extern "C" fn slot_clock_getres(clock: ClockId, out: &mut Timespec) -> i32 {
    raw(clock_getres(clock).map(|resolution| *out = resolution))
}

pub(crate) extern "C" fn slot_getcpu(cpu: &mut u32, node: &mut u32, _: Option<&mut ()>) -> i32 {
    raw(getcpu().map(|here| (*cpu, *node) = (here.cpu, here.node)))
}

fn raw(result: Result<(), Errno>) -> i32 {
    result.map_or_else(|error| -error.raw_os_error(), |()| 0)
}

#[cfg(test)]
mod tests {
    use super::{Errno, earliest, is_believed};
    use crate::types::ClockId;

    #[test]
    fn seconds_that_may_have_wrapped_are_not_believed() {
        let wall = earliest(ClockId::REALTIME);
        let (y1973, y2026, y2040) = (123_096_704, 1_770_000_000, i64::from(2_208_988_800_u32 as i32));
        for (seconds, earliest, refusal, expected) in [
            (y2026, wall, Errno::EPERM, true),
            (y1973, wall, Errno::EPERM, false),
            (y1973, wall, Errno::ENOSYS, true), // a clock that was never set, before Linux 5.1
            (y2040, wall, Errno::ENOSYS, false),
            (12, earliest(ClockId::MONOTONIC), Errno::EPERM, true),
            (-12, earliest(ClockId::MONOTONIC), Errno::ENOSYS, false),
        ] {
            assert_eq!(is_believed(seconds, earliest, refusal), expected, "{seconds} after {refusal}");
        }
    }
}
