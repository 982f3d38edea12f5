//! The kernel, always: typed system calls with the signatures of the vDSO path.
//!
//! A function may have several system calls (see [`Function`]); they are tried in order. One that the kernel
//! does not have is not tried again, one that a sandbox denies is: sandboxes are per thread.

#![allow(unsafe_code, reason = "one block for each system call")]

mod process;

use core::sync::atomic::{AtomicUsize, Ordering};

use crate::arch::native::{self, ABI};
use crate::arch::{Function, Shape, Syscall};
use crate::error::Errno;
use crate::types::{ClockId, Cpu, Timespec, Timeval};
pub(crate) use process::*;

/// The seconds since the Epoch, from the kernel: `CLOCK_REALTIME_COARSE`'s, or time(2)'s where that is 64 bits.
///
/// # Errors
/// The first error other than `ENOSYS`, if every system call that can tell the seconds is denied;
/// `EOVERFLOW` after January 2038 where only 32-bit ones are to be had.
///
/// ```
/// assert!(vdso_time::syscall::time()? > 1_700_000_000);
/// # Ok::<(), vdso_time::Errno>(())
/// ```
pub fn time() -> Result<i64, Errno> {
    Ok(TIME.time(ClockId::REALTIME_COARSE)?.tv_sec)
}

/// The time since the Epoch, to the microsecond, from the kernel.
///
/// # Errors
/// As those of [`time`].
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

/// The time of a clock, from the kernel.
///
/// # Errors
/// `EINVAL`: the kernel has no such clock. Otherwise as those of [`time`]; a clock's driver may have its own.
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
    CLOCK_GETTIME.time(clock)
}

/// The resolution of a clock, from the kernel.
///
/// # Errors
/// As those of [`clock_gettime`].
///
/// ```
/// use vdso_time::{ClockId, syscall};
///
/// println!("one tick is {} ns", syscall::clock_getres(ClockId::REALTIME_COARSE)?.tv_nsec);
/// # Ok::<(), vdso_time::Errno>(())
/// ```
pub fn clock_getres(clock: ClockId) -> Result<Timespec, Errno> {
    CLOCK_GETRES.time(clock)
}

/// The CPU and the NUMA node that the thread runs on, from the kernel.
///
/// # Errors
/// Whatever a sandbox answers.
///
/// ```
/// println!("{:?}", vdso_time::syscall::getcpu()?);
/// # Ok::<(), vdso_time::Errno>(())
/// ```
pub fn getcpu() -> Result<Cpu, Errno> {
    let (mut cpu, mut node) = (0, 0);
    // SAFETY: the places are good for a write.
    check(unsafe { getcpu_at(&raw mut cpu, &raw mut node) })?;
    Ok(Cpu { cpu, node })
}

/// getcpu(2) itself: 0, or a negated error number.
///
/// # Safety
/// The places must be good for a write.
pub(crate) unsafe fn getcpu_at(cpu: *mut u32, node: *mut u32) -> isize {
    const NUMBER: u32 = ABI.getcpu.syscalls[0].number;
    let args = [cpu.expose_provenance(), node.expose_provenance(), 0, 0, 0];
    // SAFETY: getcpu writes two `u32`, and the caller has places for them.
    unsafe { native::syscall(NUMBER, args) }
}

static TIME: Chain = Chain::new(ABI.time.syscalls);
static GETTIMEOFDAY: Chain = Chain::new(ABI.gettimeofday.syscalls);
pub(crate) static CLOCK_GETTIME: Chain = Chain::new(ABI.clock_gettime.syscalls);
pub(crate) static CLOCK_GETRES: Chain = Chain::new(ABI.clock_getres.syscalls);

/// The system calls of a function, and which of them to begin with.
pub(crate) struct Chain {
    calls: &'static [Syscall],
    /// The kernel has none of those before this one. A sandbox that answers `ENOSYS` to one thread makes the others
    /// begin here too; if what follows refuses, or its seconds are negative, [`Chain::again`] asks those before.
    first: AtomicUsize,
}

impl Chain {
    const fn new(calls: &'static [Syscall]) -> Self {
        Self { calls, first: AtomicUsize::new(0) }
    }

    /// What [`read`](Self::read) writes.
    fn time(&self, clock: ClockId) -> Result<Timespec, Errno> {
        let mut time = Timespec::default();
        self.read(clock, &mut time)?;
        Ok(time)
    }

    /// Asks each system call until one answers, or the kernel says that there is no such clock.
    pub(crate) fn read(&self, clock: ClockId, time: &mut Timespec) -> Result<(), Errno> {
        let mut refusal = Errno::ENOSYS;
        let first = self.first.load(Ordering::Relaxed);
        let mut index = first;
        while let Some(call) = self.calls.get(index) {
            match read(call, clock, time) {
                Ok(()) if ends_in_2038(call) && time.tv_sec < 0 => {
                    return self.again(clock, time, Errno::EOVERFLOW);
                }
                Err(Errno::ENOSYS) if refusal == Errno::ENOSYS => self.missing(index),
                Err(Errno::ENOSYS) => {}
                Err(error) if error != Errno::EINVAL => {
                    if refusal == Errno::ENOSYS {
                        refusal = error;
                    }
                }
                result => return result,
            }
            index += 1;
        }
        if (const { ABI.calls_time32() }) && first != 0 {
            return self.again(clock, time, refusal);
        }
        Err(refusal)
    }

    /// Remembers that the kernel has not this system call, nor those before it, unless it is the last.
    fn missing(&self, index: usize) {
        if (const { ABI.calls_time32() }) && index + 1 < self.calls.len() {
            self.first.store(index + 1, Ordering::Relaxed);
        }
    }

    /// Asks the 64-bit system calls again: a 32-bit one answered with negative seconds, for it is past January 2038, or
    /// everything that was asked refused. Who said that the others were missing may have been a sandbox of another thread.
    #[cold]
    fn again(&self, clock: ClockId, time: &mut Timespec, refusal: Errno) -> Result<(), Errno> {
        let mut calls = self.calls.iter().filter(|call| !call.shape.is_time32());
        calls.find_map(|call| read(call, clock, time).ok()).ok_or(refusal)
    }
}

/// What [`gettimeofday`] returns, where the caller wants it.
pub(crate) fn read_timeval(time: &mut Timeval) -> Result<(), Errno> {
    *time = GETTIMEOFDAY.time(ClockId::REALTIME)?.into();
    Ok(())
}

/// The number of the system call that a function begins with now.
pub(crate) fn number(function: &'static Function) -> u32 {
    let chains = [&TIME, &GETTIMEOFDAY, &CLOCK_GETTIME, &CLOCK_GETRES];
    let chain = chains.into_iter().find(|chain| core::ptr::eq(chain.calls, function.syscalls));
    let first = chain.map_or(0, |chain| chain.first.load(Ordering::Relaxed));
    function.syscalls.get(first).map_or(u32::MAX, |call| call.number)
}

/// Whether a system call's seconds end in January 2038. Where no call's do, the code for those is left out.
fn ends_in_2038(call: &Syscall) -> bool {
    (const { ABI.calls_time32() }) && call.shape.is_time32()
}

/// Makes one system call, whatever its shape: all write the seconds and, but for time(2), a fraction of a second.
fn read(call: &Syscall, clock: ClockId, time: &mut Timespec) -> Result<(), Errno> {
    if ends_in_2038(call) {
        let mut numbers = [0_i32; 2];
        // SAFETY: the shape says that the call writes at most two 32-bit numbers.
        unsafe { ask(call, clock, (&raw mut numbers).expose_provenance()) }?;
        let [seconds, fraction] = numbers.map(i64::from);
        *time = Timespec { tv_sec: seconds, tv_nsec: fraction };
    } else {
        *time = Timespec::default();
        // SAFETY: the shape says that the call writes at most two 64-bit numbers.
        unsafe { ask(call, clock, (&raw mut *time).expose_provenance()) }?;
    }
    if matches!(call.shape, Shape::Timeval64 | Shape::Timeval32) {
        time.tv_nsec = time.tv_nsec.wrapping_mul(1000);
    }
    Ok(())
}

/// Makes a system call that writes its answer at `place`: its second argument if the first is a clock.
///
/// # Safety
/// The place must be good for what a call of this shape writes.
unsafe fn ask(call: &Syscall, clock: ClockId, place: usize) -> Result<usize, Errno> {
    let args = match call.shape {
        Shape::Timespec64 | Shape::Timespec32 => [clock.as_raw() as usize, place, 0, 0, 0],
        _ => [place, 0, 0, 0, 0],
    };
    // SAFETY: the caller vouches for the place.
    check(unsafe { native::syscall(call.number, args) })
}

/// A result in `-4095..=-1` is an error.
fn check(result: isize) -> Result<usize, Errno> {
    if (-4095..=-1).contains(&result) {
        return Err(Errno::from_raw_os_error(-result as i32).unwrap_or(Errno::EINVAL));
    }
    Ok(result as usize)
}
