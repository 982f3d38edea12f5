//! The calls. Each loads its slot and calls what is there. [`resolve`] decides what a slot holds.

#![allow(unsafe_code, reason = "an address is called as a function here")]

use core::ptr;

use super::resolve::{CLOCK_GETRES, CLOCK_GETTIME, GETCPU, GETTIMEOFDAY, TIME};
use super::{resolve, syscall};
use crate::errno::Errno;
use crate::types::{ClockId, Cpu, Timespec, Timeval};

/// The seconds since the Epoch: time(2), 64 bits on every architecture. -1 if the vDSO and every system call that
/// can tell the seconds refused; see [`try_time`].
///
/// This is the second of `CLOCK_REALTIME_COARSE`, as time(2)'s is: it turns with the timer tick, up to 10 ms after
/// `CLOCK_REALTIME`'s.
///
/// ```
/// assert!(vdso_time::time() > 1_700_000_000);
/// ```
#[inline]
#[must_use]
pub fn time() -> i64 {
    let time = TIME.get();
    // SAFETY: the slot holds code of this signature, and a null pointer asks for nothing but the result.
    unsafe { time(ptr::null_mut()) }
}

/// The seconds since the Epoch, as [`time`] gives them.
///
/// # Errors
/// What the first system call that is not missing answered, if every one is denied (a sandbox: `EPERM`);
/// `EOVERFLOW` after January 2038 where only 32-bit ones are to be had.
///
/// ```
/// assert!(vdso_time::try_time()? > 1_700_000_000);
/// # Ok::<(), vdso_time::Errno>(())
/// ```
#[inline]
pub fn try_time() -> Result<i64, Errno> {
    let seconds = time();
    if resolve::is_error(seconds) { time_failed() } else { Ok(seconds) }
}

/// The time since the Epoch, to the microsecond: gettimeofday(2).
///
/// # Errors
/// As those of [`try_time`].
///
/// ```
/// let now = vdso_time::gettimeofday()?;
/// println!("{}.{:06}", now.tv_sec, now.tv_usec);
/// # Ok::<(), vdso_time::Errno>(())
/// ```
#[inline]
pub fn gettimeofday() -> Result<Timeval, Errno> {
    let gettimeofday = GETTIMEOFDAY.get();
    let mut time = Timeval::default();
    // SAFETY: the slot holds code of this signature, which writes to `time` alone.
    let result = unsafe { gettimeofday(&raw mut time, ptr::null_mut()) };
    if result != 0 {
        gettimeofday_failed(&mut time)?;
    }
    Ok(time)
}

/// The time of a clock: clock_gettime(2).
///
/// # Errors
/// `EINVAL`: the kernel has no such clock. A clock's driver may have its own errors; a sandbox that denies the system call
/// to a clock that the vDSO does not serve answers, mostly, `EPERM`.
///
/// ```
/// use vdso_time::{ClockId, clock_gettime};
///
/// let start = clock_gettime(ClockId::MONOTONIC)?;
/// assert!(clock_gettime(ClockId::MONOTONIC)? >= start);
/// # Ok::<(), vdso_time::Errno>(())
/// ```
#[inline]
pub fn clock_gettime(clock: ClockId) -> Result<Timespec, Errno> {
    let clock_gettime = CLOCK_GETTIME.get();
    let mut time = Timespec::default();
    // SAFETY: the slot holds code of this signature, which writes to `time` alone.
    let result = unsafe { clock_gettime(clock.as_raw(), &raw mut time) };
    if result != 0 {
        clock_gettime_failed(clock, result, &mut time)?;
    }
    Ok(time)
}

/// The resolution of a clock: clock_getres(2).
///
/// The answer is the vDSO's: for an auxiliary clock ([`ClockId::aux`]) Linux since 6.17 says 1 ns there without a look at
/// whether the clock exists, where [`syscall::clock_getres`](crate::syscall::clock_getres) says `EINVAL`.
///
/// # Errors
/// As those of [`clock_gettime`].
///
/// ```
/// use vdso_time::{ClockId, clock_getres};
///
/// let tick = clock_getres(ClockId::MONOTONIC_COARSE)?;
/// println!("the coarse clocks turn every {} ns", tick.tv_nsec);
/// # Ok::<(), vdso_time::Errno>(())
/// ```
#[inline]
pub fn clock_getres(clock: ClockId) -> Result<Timespec, Errno> {
    let clock_getres = CLOCK_GETRES.get();
    let mut resolution = Timespec::default();
    // SAFETY: the slot holds code of this signature, which writes to `resolution` alone.
    let result = unsafe { clock_getres(clock.as_raw(), &raw mut resolution) };
    if result != 0 {
        clock_getres_failed(clock, result, &mut resolution)?;
    }
    Ok(resolution)
}

/// The CPU and the NUMA node that the thread runs on: getcpu(2).
///
/// # Errors
/// Whatever a sandbox answers, where the vDSO has no getcpu (arm, aarch64, i386 before Linux 6.3).
///
/// ```
/// let here = vdso_time::getcpu()?;
/// println!("CPU {}, node {}", here.cpu, here.node);
/// # Ok::<(), vdso_time::Errno>(())
/// ```
#[inline]
pub fn getcpu() -> Result<Cpu, Errno> {
    let getcpu = GETCPU.get();
    let (mut cpu, mut node) = (0, 0);
    // SAFETY: the slot holds code of this signature, which writes to `cpu` and `node` alone.
    let result = unsafe { getcpu(&raw mut cpu, &raw mut node, ptr::null_mut()) };
    if result != 0 {
        getcpu_failed(&mut cpu, &mut node)?;
    }
    Ok(Cpu { cpu, node })
}

// The variables are initialised: a vDSO or a sandbox that answers 0 and writes nothing makes the answer 0.
//
// After a result other than 0: the kernel's EINVAL for a clock is final. Any other error of the vDSO is not,
// because kernels have answered ENOSYS for a clock source that their vDSO could not read (mips before 4.13).
//
// The second answer goes to the same variable as the first. If it were returned, the caller would choose
// between two copies of the time, and would copy 16 bytes at once that were stored 8 and 8. That stalls,
// also on the path that did not fail.

#[cold]
fn time_failed() -> Result<i64, Errno> {
    syscall::time()
}

#[cold]
fn gettimeofday_failed(time: &mut Timeval) -> Result<(), Errno> {
    syscall::read_timeval(time)
}

#[cold]
fn getcpu_failed(cpu: &mut u32, node: &mut u32) -> Result<(), Errno> {
    syscall::read_cpu(cpu, node)
}

#[cold]
fn clock_gettime_failed(clock: ClockId, result: i32, time: &mut Timespec) -> Result<(), Errno> {
    if result == EINVAL {
        return Err(Errno::EINVAL);
    }
    syscall::read_clock(clock, time)
}

#[cold]
fn clock_getres_failed(clock: ClockId, result: i32, resolution: &mut Timespec) -> Result<(), Errno> {
    if result == EINVAL {
        return Err(Errno::EINVAL);
    }
    syscall::read_resolution(clock, resolution)
}

const EINVAL: i32 = -Errno::EINVAL.raw_os_error();
