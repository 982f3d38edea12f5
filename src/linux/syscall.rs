//! Typed system calls with the signatures of the vDSO path, and the same in the shape of a slot.
//!
//! A function may have several system calls (see [`Function`]). They are tried in order, each time from
//! the first: which of them a thread may make depends on its sandbox, so nothing is remembered.

#![allow(unsafe_code, reason = "one block for each system call")]

use super::native::{self, ABI};
use crate::arch::{Function, Shape, Syscall, TIME32_FIRST};
use crate::errno::Errno;
use crate::types::{ClockId, Cpu, Timespec, Timeval};

/// Returns the seconds since the Epoch from the kernel: those of `CLOCK_REALTIME_COARSE`, as time(2).
///
/// # Errors
/// If every system call that can tell the seconds fails, the first error other than `ENOSYS`.
/// `EOVERFLOW` after January 2038 if only 32-bit system calls answer.
///
/// ```
/// assert!(vdso_time::syscall::time()? > 1_700_000_000);
/// # Ok::<(), vdso_time::Errno>(())
/// ```
pub fn time() -> Result<i64, Errno> {
    let mut now = Timespec::default();
    ask(&ABI.time, &Query::wall(ClockId::REALTIME_COARSE), &mut now)?;
    Ok(now.tv_sec)
}

/// Returns the time since the Epoch in microseconds from the kernel.
///
/// # Errors
/// Those of [`time`].
///
/// ```
/// assert!(vdso_time::syscall::gettimeofday()?.tv_sec > 1_700_000_000);
/// # Ok::<(), vdso_time::Errno>(())
/// ```
pub fn gettimeofday() -> Result<Timeval, Errno> {
    let mut time = Timeval::default();
    read_timeval(&mut time)?;
    Ok(time)
}

/// Returns the time of a clock from the kernel.
///
/// # Errors
/// `EINVAL`: the kernel has no such clock. Otherwise those of [`time`]. The driver of a clock may have
/// errors of its own.
///
/// ```
/// use vdso_time::{ClockId, syscall};
///
/// let before = syscall::clock_gettime(ClockId::MONOTONIC)?;
/// let after = vdso_time::clock_gettime(ClockId::MONOTONIC)?;
/// assert!(before <= after);
/// # Ok::<(), vdso_time::Errno>(())
/// ```
pub fn clock_gettime(clock: ClockId) -> Result<Timespec, Errno> {
    let mut time = Timespec::default();
    read_clock(clock, &mut time)?;
    Ok(time)
}

/// Returns the resolution of a clock from the kernel.
///
/// # Errors
/// Those of [`clock_gettime`].
///
/// ```
/// use vdso_time::{ClockId, syscall};
///
/// println!("one tick is {} ns", syscall::clock_getres(ClockId::REALTIME_COARSE)?.tv_nsec);
/// # Ok::<(), vdso_time::Errno>(())
/// ```
pub fn clock_getres(clock: ClockId) -> Result<Timespec, Errno> {
    let mut resolution = Timespec::default();
    read_resolution(clock, &mut resolution)?;
    Ok(resolution)
}

/// Returns the CPU and the NUMA node that the thread runs on, from the kernel.
///
/// # Errors
/// The error that a sandbox answers.
///
/// ```
/// println!("{:?}", vdso_time::syscall::getcpu()?);
/// # Ok::<(), vdso_time::Errno>(())
/// ```
pub fn getcpu() -> Result<Cpu, Errno> {
    let (mut cpu, mut node) = (0, 0);
    read_cpu(&mut cpu, &mut node)?;
    Ok(Cpu { cpu, node })
}

// The answer goes to the caller's own variable. A copy of 16 bytes that were stored 8 and 8 would stall.

/// Writes what [`gettimeofday`] returns.
pub(crate) fn read_timeval(time: &mut Timeval) -> Result<(), Errno> {
    let mut now = Timespec::default();
    ask(&ABI.gettimeofday, &Query::wall(ClockId::REALTIME), &mut now)?;
    *time = now.into();
    Ok(())
}

/// Writes what [`clock_gettime`] returns.
pub(crate) fn read_clock(clock: ClockId, time: &mut Timespec) -> Result<(), Errno> {
    let query = Query { clock, is_callers: true, earliest: earliest(clock) };
    ask(&ABI.clock_gettime, &query, time)
}

/// Writes what [`clock_getres`] returns.
pub(crate) fn read_resolution(clock: ClockId, resolution: &mut Timespec) -> Result<(), Errno> {
    ask(&ABI.clock_getres, &Query { clock, is_callers: true, earliest: 0 }, resolution)
}

/// Writes what [`getcpu`] returns.
pub(crate) fn read_cpu(cpu: &mut u32, node: &mut u32) -> Result<(), Errno> {
    const NUMBER: u32 = ABI.getcpu.syscalls[0].number;
    let args = [(&raw mut *cpu).expose_provenance(), (&raw mut *node).expose_provenance(), 0, 0, 0];
    // SAFETY: getcpu writes two `u32`, and both places are exclusive references.
    check(unsafe { native::syscall(NUMBER, args) }).map(drop)
}

/// What is asked of the system calls of a function.
struct Query {
    clock: ClockId,
    /// Whether the caller chose the clock. Then `EINVAL` says that there is no such clock, and is final.
    is_callers: bool,
    /// What a 32-bit answer's seconds must be at least.
    earliest: i64,
}

impl Query {
    const fn wall(clock: ClockId) -> Self {
        Self { clock, is_callers: false, earliest: earliest(clock) }
    }
}

/// Returns the seconds from which on 32 bits of a clock's seconds are believed.
///
/// After February 2106 they count from 1970 again. So the 64-bit system call is asked about a wall
/// clock's time before 2026, which is older than this code. A negative number is a time after January
/// 2038.
pub(crate) const fn earliest(clock: ClockId) -> i64 {
    const Y2026: i64 = 1_767_225_600;
    match clock {
        ClockId::REALTIME | ClockId::REALTIME_COARSE | ClockId::REALTIME_ALARM | ClockId::TAI => Y2026,
        _ => 0,
    }
}

/// Makes each system call of a function until one answers.
///
/// An error of one of them moves on to the next, except `EINVAL` for a clock of the caller's.
fn ask(function: &Function, query: &Query, time: &mut Timespec) -> Result<(), Errno> {
    let mut refusal = Errno::ENOSYS;
    for call in function.syscalls_in_order(TIME32_FIRST) {
        if is_killed_for(call) && !matches!(refusal, Errno::ENOSYS | Errno::EOVERFLOW) {
            break;
        }
        let error = match read(call, query.clock, time) {
            Ok(()) if !is_time32(call) || is_believed(time.tv_sec, query.earliest, refusal) => return Ok(()),
            Ok(()) => Errno::EOVERFLOW,
            Err(Errno::EINVAL) if query.is_callers => return Err(Errno::EINVAL),
            Err(error) => error,
        };
        if refusal == Errno::ENOSYS || error == Errno::EOVERFLOW {
            refusal = error;
        }
    }
    Err(refusal)
}

/// Whether 32-bit Android may kill for a system call. Then it is made only after January 2038 or where
/// the kernel has no 32-bit call.
fn is_killed_for(call: &Syscall) -> bool {
    (const { TIME32_FIRST && cfg!(target_pointer_width = "32") }) && !call.shape.is_time32()
}

/// Whether 32 bits of seconds are an answer, given what the 64-bit system calls answered before.
///
/// Seconds before `earliest` are one only if there are no such calls: a kernel before Linux 5.1 has none,
/// and cannot be set to a time after 2038.
fn is_believed(seconds: i64, earliest: i64, refusal: Errno) -> bool {
    seconds >= earliest || (seconds >= 0 && refusal == Errno::ENOSYS)
}

/// Whether the seconds of a system call end in January 2038. The compiler leaves the code for such
/// calls out of a program whose table has none.
fn is_time32(call: &Syscall) -> bool {
    (const { cfg!(target_pointer_width = "32") }) && call.shape.is_time32()
}

/// Makes one system call of any shape. All write the seconds and a fraction of a second.
fn read(call: &Syscall, clock: ClockId, time: &mut Timespec) -> Result<(), Errno> {
    if is_time32(call) {
        let mut numbers = [0_i32; 2];
        // SAFETY: the shape says that the call writes at most two 32-bit numbers.
        unsafe { make(call, clock, (&raw mut numbers).expose_provenance()) }?;
        let [seconds, fraction] = numbers.map(i64::from);
        *time = Timespec { tv_sec: seconds, tv_nsec: fraction };
    } else {
        *time = Timespec::default();
        // SAFETY: the shape says that the call writes at most two 64-bit numbers.
        unsafe { make(call, clock, (&raw mut *time).expose_provenance()) }?;
    }
    if matches!(call.shape, Shape::Timeval64 | Shape::Timeval32) {
        time.tv_nsec = time.tv_nsec.wrapping_mul(1000);
    }
    Ok(())
}

/// Makes a system call that writes its answer at `out`: its second argument if the first is a clock.
///
/// # Safety
/// A call of this shape must be allowed to write its answer at `out`.
unsafe fn make(call: &Syscall, clock: ClockId, out: usize) -> Result<usize, Errno> {
    let args = match call.shape {
        Shape::Timespec64 | Shape::Timespec32 => [clock.as_raw() as usize, out, 0, 0, 0],
        _ => [out, 0, 0, 0, 0],
    };
    // SAFETY: the caller promises that the call may write at `out`.
    check(unsafe { native::syscall(call.number, args) })
}

/// A result in `-4095..=-1` is an error.
pub(super) fn check(result: isize) -> Result<usize, Errno> {
    if (-4095..=-1).contains(&result) {
        return Err(Errno::from_raw_os_error(-result as i32).unwrap_or(Errno::EINVAL));
    }
    Ok(result as usize)
}

// The system calls in the shape of a slot. Their callers promise what those of the kernel's own functions
// do: each pointer is null or good for a write.

/// `time`, without its pointer: -1 if no system call answers.
pub(crate) unsafe extern "C" fn slot_time(_: *mut i64) -> i64 {
    time().unwrap_or(-1)
}

/// `gettimeofday`, without a time zone.
pub(crate) unsafe extern "C" fn slot_gettimeofday(out: *mut Timeval, _: *mut ()) -> i32 {
    let mut time = Timeval::default();
    let result = raw(read_timeval(&mut time));
    // SAFETY: the caller promises that `out` is good for a write.
    unsafe { out.write(time) };
    result
}

/// `clock_gettime`.
pub(crate) unsafe extern "C" fn slot_clock_gettime(clock: i32, out: *mut Timespec) -> i32 {
    let mut time = Timespec::default();
    let result = raw(read_clock(ClockId::from_raw(clock), &mut time));
    // SAFETY: the caller promises that `out` is good for a write.
    unsafe { out.write(time) };
    result
}

/// `clock_getres`.
pub(crate) unsafe extern "C" fn slot_clock_getres(clock: i32, out: *mut Timespec) -> i32 {
    let mut resolution = Timespec::default();
    let result = raw(read_resolution(ClockId::from_raw(clock), &mut resolution));
    // SAFETY: the caller promises that `out` is good for a write.
    unsafe { out.write(resolution) };
    result
}

/// `getcpu`.
pub(crate) unsafe extern "C" fn slot_getcpu(cpu_out: *mut u32, node_out: *mut u32, _: *mut ()) -> i32 {
    let (mut cpu, mut node) = (0, 0);
    let result = raw(read_cpu(&mut cpu, &mut node));
    // SAFETY: the caller promises that `cpu_out` is good for a write.
    unsafe { cpu_out.write(cpu) };
    // SAFETY: the same of `node_out`.
    unsafe { node_out.write(node) };
    result
}

/// A result as the kernel gives it: 0, or a negated error number.
pub(crate) fn raw(result: Result<(), Errno>) -> i32 {
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
            (y1973, wall, Errno::ENOSYS, true), // a clock that was never set, on a kernel before 5.1
            (y2040, wall, Errno::ENOSYS, false),
            (12, earliest(ClockId::MONOTONIC), Errno::EPERM, true),
            (-12, earliest(ClockId::MONOTONIC), Errno::ENOSYS, false),
        ] {
            assert_eq!(is_believed(seconds, earliest, refusal), expected, "{seconds} after {refusal}");
        }
    }
}
