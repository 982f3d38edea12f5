//! The public functions. Each calls the function in its slot, which [`super::resolve`] chose.

use super::resolve::{CLOCK_GETRES, CLOCK_GETTIME, GETCPU, GETTIMEOFDAY, TIME};
use super::syscall;
use crate::errno::Errno;
use crate::types::{ClockId, Cpu, Timespec, Timeval};

/// Returns the seconds since the Epoch, as time(2) does, but with 64 bits on every architecture.
///
/// As in time(2), these are the seconds of `CLOCK_REALTIME_COARSE`. They change at a timer tick, up
/// to 10 ms after the seconds of `CLOCK_REALTIME`.
///
/// The result is -1 if the vDSO and every system call fail. time(2) has the same contract, which
/// allows this function to return the vDSO's answer without a test. Where -1 would be mistaken for
/// a time, such as in an expiry date, use [`try_time`], which returns the error.
#[inline]
#[must_use]
pub fn time() -> i64 {
    TIME.get()(None)
}

/// Returns the seconds since the Epoch, as [`time`] does.
///
/// # Errors
///
/// - The first error other than `ENOSYS`, if every system call fails. If a sandbox denies them, it
///   is usually `EPERM`.
/// - `EOVERFLOW` after January 2038, if only 32-bit system calls answer.
#[inline]
pub fn try_time() -> Result<i64, Errno> {
    match time() {
        -4095..=-1 => cold(syscall::try_time),
        seconds => Ok(seconds),
    }
}

/// Returns the seconds and microseconds since the Epoch, as gettimeofday(2) does.
///
/// # Errors
///
/// The errors of [`try_time`].
#[inline]
pub fn gettimeofday() -> Result<Timeval, Errno> {
    let mut time = Timeval::default();
    if GETTIMEOFDAY.get()(&mut time, None) != 0 {
        cold(|| syscall::gettimeofday().map(|now| time = now))?;
    }
    Ok(time)
}

/// Returns the time of a clock, as clock_gettime(2) does.
///
/// # Errors
///
/// - `EINVAL`: the kernel has no such clock.
/// - The error that a sandbox returns, usually `EPERM`, if it denies the system call and the vDSO
///   does not read this clock.
/// - `EOVERFLOW` after January 2038, if only 32-bit system calls answer.
/// - Errors of the clock's driver, if the clock is a device's.
///
/// # Examples
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
    let mut time = Timespec::default();
    let result = CLOCK_GETTIME.get()(clock, &mut time);
    if result != 0 {
        retry_clock(result, clock, &mut time, syscall::clock_gettime)?;
    }
    Ok(time)
}

/// Returns the resolution of a clock, as clock_getres(2) does.
///
/// The resolution is usually 1 ns. For a coarse clock, and in a kernel without high-resolution
/// timers, it is the length of a timer tick (1 to 10 ms). The resolution is neither the cost of a
/// read nor the accuracy of the clock.
///
/// Since Linux 6.17, the vDSO answers 1 ns for an auxiliary clock ([`ClockId::aux`]), even if the
/// clock does not exist. In that case [`syscall::clock_getres`](crate::syscall::clock_getres)
/// returns `EINVAL`.
///
/// # Errors
///
/// The errors of [`clock_gettime`].
///
/// # Examples
///
/// ```
/// use vdso_time::{ClockId, clock_getres};
///
/// let tick = clock_getres(ClockId::MONOTONIC_COARSE)?;
/// println!("the coarse clocks advance every {} ns", tick.tv_nsec);
/// # Ok::<(), vdso_time::Errno>(())
/// ```
#[inline]
pub fn clock_getres(clock: ClockId) -> Result<Timespec, Errno> {
    let mut resolution = Timespec::default();
    let result = CLOCK_GETRES.get()(clock, &mut resolution);
    // No clock has a resolution of 0. But in a process that CRIU has restored, the vDSO's
    // clock_getres can return success and a resolution of 0 (docs/ABI.md).
    if result != 0 || resolution.tv_sec == 0 && resolution.tv_nsec == 0 {
        retry_clock(result, clock, &mut resolution, syscall::clock_getres)?;
    }
    Ok(resolution)
}

/// Returns the CPU and the NUMA node on which the thread runs, as getcpu(2) does.
///
/// When the function returns, the thread might already run on another CPU.
///
/// # Errors
///
/// The error that a sandbox returns if it denies the system call getcpu(2). This function needs the
/// system call if the vDSO has no getcpu, if the vDSO's getcpu makes the system call itself, or if
/// this crate does not use the vDSO's getcpu. One of these conditions is true on arm, aarch64 and
/// riscv64, before Linux 6.3 on i386, before 4.8 on s390x, before 3.14 on x86_64, and with the
/// images of QEMU and gVisor.
#[inline]
pub fn getcpu() -> Result<Cpu, Errno> {
    let mut cpu = 0;
    let mut node = 0;
    if GETCPU.get()(&mut cpu, &mut node, None) != 0 {
        cold(|| syscall::getcpu().map(|here| (cpu, node) = (here.cpu, here.node)))?;
    }
    Ok(Cpu { cpu, node })
}

// The variables for the answer are initialised, because a vDSO may return 0 and write nothing, and
// so may a system call in a sandbox.
//
// The kernel's answer goes to the same variables as the vDSO's. If `cold` returned the answer
// instead, every caller would use one instruction to load the 16 bytes that two instructions have
// stored. Such a load has to wait until both stores are complete.

/// Calls the closure, which asks the kernel, in code that is not on the caller's usual path.
#[cold]
#[inline(never)]
fn cold<T>(ask: impl FnOnce() -> T) -> T {
    ask()
}

/// Asks the kernel, unless the vDSO's answer is final. EINVAL is final. Other errors are not,
/// because vDSOs have returned ENOSYS for a clock source that they could not read (mips before
/// 4.13).
#[cold]
#[inline(never)]
fn retry_clock(
    result: i32,
    clock: ClockId,
    out: &mut Timespec,
    ask: impl FnOnce(ClockId) -> Result<Timespec, Errno>,
) -> Result<(), Errno> {
    const EINVAL: i32 = -Errno::EINVAL.raw_os_error();
    *out = if result == EINVAL {
        Err(Errno::EINVAL)
    } else {
        ask(clock)
    }?;
    Ok(())
}
