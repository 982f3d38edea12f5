//! The calls: each loads its slot and calls what is there. What a slot may hold is decided in [`resolve`].

#![allow(unsafe_code, reason = "an address is called as a function here")]

pub(crate) mod resolve;
pub(crate) mod route;
mod width;

use core::mem::MaybeUninit;
use core::ptr;

use crate::error::Errno;
use crate::sys;
use crate::types::{ClockId, Cpu, Timespec, Timeval};
use resolve::{CLOCK_GETRES, CLOCK_GETTIME, GETCPU, GETTIMEOFDAY, TIME};

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
    let mut time = MaybeUninit::uninit();
    // SAFETY: the slot holds code of this signature, which writes to `time` alone.
    let result = unsafe { gettimeofday(time.as_mut_ptr(), ptr::null_mut()) };
    if result != 0 {
        gettimeofday_failed(&mut time)?;
    }
    // SAFETY: the call answered 0, or another did, so the time is written.
    Ok(unsafe { time.assume_init() })
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
    let mut time = MaybeUninit::uninit();
    // SAFETY: the slot holds code of this signature, which writes to `time` alone.
    let result = unsafe { clock_gettime(clock.as_raw(), time.as_mut_ptr()) };
    if result != 0 {
        clock_failed(&sys::CLOCK_GETTIME, clock, result, &mut time)?;
    }
    // SAFETY: the call answered 0, or another did, so the time is written.
    Ok(unsafe { time.assume_init() })
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
    let mut resolution = MaybeUninit::uninit();
    // SAFETY: the slot holds code of this signature, which writes to `resolution` alone.
    let result = unsafe { clock_getres(clock.as_raw(), resolution.as_mut_ptr()) };
    if result != 0 {
        clock_failed(&sys::CLOCK_GETRES, clock, result, &mut resolution)?;
    }
    // SAFETY: the call answered 0, or another did, so the resolution is written.
    Ok(unsafe { resolution.assume_init() })
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
    let (mut cpu, mut node) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: the slot holds code of this signature, which writes to `cpu` and `node` alone.
    let result = unsafe { getcpu(cpu.as_mut_ptr(), node.as_mut_ptr(), ptr::null_mut()) };
    if result != 0 {
        getcpu_failed(&mut cpu, &mut node)?;
    }
    // SAFETY: the call answered 0, or another did, so the CPU is written.
    let cpu = unsafe { cpu.assume_init() };
    // SAFETY: the same of the node.
    let node = unsafe { node.assume_init() };
    Ok(Cpu { cpu, node })
}

// What follows an answer other than 0: the kernel's word on a clock (EINVAL) is final, and the vDSO's on anything else is
// not, for kernels have answered ENOSYS for a clock source that their vDSO could not read (mips before 4.13).
//
// The second answer goes where the first should have gone. Were it returned, the caller would have two copies of the
// time to choose from, and would copy 16 bytes at once that were stored 8 and 8: that stalls, on the path that did not fail.

#[cold]
fn time_failed() -> Result<i64, Errno> {
    sys::time()
}

#[cold]
fn gettimeofday_failed(time: &mut MaybeUninit<Timeval>) -> Result<(), Errno> {
    sys::read_timeval(time.write(Timeval::default()))
}

#[cold]
fn clock_failed(
    calls: &sys::Chain,
    clock: ClockId,
    result: i32,
    time: &mut MaybeUninit<Timespec>,
) -> Result<(), Errno> {
    if result == EINVAL {
        return Err(Errno::EINVAL);
    }
    calls.read(clock, time.write(Timespec::default()))
}

#[cold]
fn getcpu_failed(cpu: &mut MaybeUninit<u32>, node: &mut MaybeUninit<u32>) -> Result<(), Errno> {
    let here = sys::getcpu()?;
    cpu.write(here.cpu);
    node.write(here.node);
    Ok(())
}

const EINVAL: i32 = -Errno::EINVAL.raw_os_error();
