//! The public functions as system calls, without the vDSO.
//!
//! A function may have several system calls (see [`Entry`]), which are tried in order. No
//! failure is remembered, because it may be due to the thread's sandbox.

use crate::arch::native::{ABI, checked};
use crate::arch::{Entry, Shape, Syscall};
use crate::errno::Errno;
use crate::process::kernel;
use crate::types::{ClockId, Cpu, Timespec, Timespec32, Timeval};

/// Returns the seconds since the Epoch from the kernel.
///
/// They are the seconds of `CLOCK_REALTIME_COARSE`, as in time(2).
///
/// # Errors
///
/// The errors of [`try_time`](crate::try_time).
pub fn try_time() -> Result<i64, Errno> {
    Ok(ask(&ABI.time, ClockId::REALTIME_COARSE, Einval::TriesNext)?.tv_sec)
}

/// Returns the seconds and microseconds since the Epoch from the kernel.
///
/// # Errors
///
/// The errors of [`try_time`].
pub fn gettimeofday() -> Result<Timeval, Errno> {
    ask(&ABI.gettimeofday, ClockId::REALTIME, Einval::TriesNext).map(Timeval::of)
}

/// Returns the time of a clock from the kernel.
///
/// # Errors
///
/// The errors of [`clock_gettime`](crate::clock_gettime).
pub fn clock_gettime(clock: ClockId) -> Result<Timespec, Errno> {
    ask(&ABI.clock_gettime, clock, Einval::IsFinal)
}

/// Returns a function that reads this clock with one system call, and returns whether it succeeded.
///
/// The system call is the first one that can read the clock now. [`clock_gettime`] also makes the
/// calls that fail before it, such as clock_gettime64(2) before Linux 5.1.
pub(crate) fn single_read(clock: ClockId) -> impl Fn() -> bool {
    let mut calls = ABI.clock_gettime.syscalls.iter();
    let call = calls.find(|call| read(call, clock).is_ok());
    move || match call {
        Some(call) => read(call, clock).is_ok(),
        None => false,
    }
}

/// Returns the resolution of a clock from the kernel.
///
/// # Errors
///
/// The errors of [`clock_gettime`].
pub fn clock_getres(clock: ClockId) -> Result<Timespec, Errno> {
    ask(&ABI.clock_getres, clock, Einval::IsFinal)
}

/// Returns the CPU and the NUMA node on which the thread runs, from the kernel.
///
/// # Errors
///
/// The error that a sandbox returns.
pub fn getcpu() -> Result<Cpu, Errno> {
    const NUMBER: u32 = ABI.getcpu.syscalls[0].number;
    kernel::getcpu(NUMBER)
}

/// What `EINVAL` from a system call means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Einval {
    /// The caller chose the clock, so `EINVAL` means that the kernel does not have that clock. No
    /// other system call is tried.
    IsFinal,
    /// This crate chose the clock, so `EINVAL` means only that this system call cannot read that
    /// clock. The next system call is tried. For example, a kernel without CONFIG_POSIX_TIMERS has
    /// no `CLOCK_REALTIME_COARSE`, but its gettimeofday(2) still answers.
    TriesNext,
}

/// Makes the system calls of a function until one answers.
#[inline] // so that the number and the shape of the first call are constants
fn ask(entry: &'static Entry, clock: ClockId, einval: Einval) -> Result<Timespec, Errno> {
    let [first, others @ ..] = entry.syscalls else {
        return Err(Errno::ENOSYS);
    };
    read(first, clock).or_else(|refusal| ask_others(others, clock, einval, refusal))
}

/// Makes the other system calls of a function after the first one failed.
///
/// If none succeeds, returns the first error other than `ENOSYS`, because the answer of a sandbox
/// says more than a missing system call. `EOVERFLOW` replaces any other error, because it means
/// that only 32-bit calls answer. If `einval` is `Einval::IsFinal`, the first `EINVAL` ends the
/// search and is returned.
#[cold]
fn ask_others(
    calls: &[Syscall],
    clock: ClockId,
    einval: Einval,
    mut refusal: Errno,
) -> Result<Timespec, Errno> {
    let is_final = |error| error == Errno::EINVAL && einval == Einval::IsFinal;
    for call in calls {
        if is_final(refusal) {
            break;
        }
        match read(call, clock) {
            Ok(time) => return Ok(time),
            Err(error)
                if refusal == Errno::ENOSYS || error == Errno::EOVERFLOW || is_final(error) =>
            {
                refusal = error;
            }
            Err(_) => {}
        }
    }
    Err(refusal)
}

/// Makes one system call of any shape except `Getcpu`. All of these calls write the seconds and a
/// fraction of a second.
fn read(call: &Syscall, clock: ClockId) -> Result<Timespec, Errno> {
    let mut time = Timespec::default();
    let out = (&raw mut time).expose_provenance();
    let args = match call.shape {
        Shape::Timespec64 | Shape::Timespec32 => [clock.as_raw() as usize, out, 0, 0, 0],
        _ => [out, 0, 0, 0, 0],
    };
    // SAFETY: the table says that the call has this shape. A call of any shape but `Getcpu`, which
    // is not passed here, writes at most two numbers of 64 bits, to `time`.
    unsafe { checked(call.number, args) }?;
    // The first operand of `&&` is a constant, so the compiler removes this code from 64-bit
    // programs.
    if (const { cfg!(target_pointer_width = "32") }) && call.shape.is_time32() {
        let numbers = (&raw const time).cast::<Timespec32>();
        // SAFETY: `time` is larger than a `Timespec32`, and every bit pattern is a valid pair of
        // numbers.
        time = unsafe { numbers.read() }.widened()?;
    }
    if matches!(call.shape, Shape::Timeval64 | Shape::Timeval32) {
        time.tv_nsec = time.tv_nsec.wrapping_mul(1000);
    }
    Ok(time)
}
