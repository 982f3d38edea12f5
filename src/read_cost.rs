//! [`read_cost`]: a quick timing test of the cost of a clock read.

#![forbid(unsafe_code)]

use crate::arch::NATIVE;
use crate::routes::Route;
use crate::sys::{calls, routes, syscall};
use crate::types::ClockId;

/// The cost of a read of a clock, as [`read_cost`] measures it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReadCost {
    /// A read takes at most two thirds of the time of a system call. So the vDSO reads the clock in
    /// user space.
    FunctionCall,
    /// A read takes about as long as a system call, for one of these reasons:
    /// [`routes`](crate::routes()) names no vDSO function, no vDSO reads this clock, the vDSO's
    /// function enters the kernel, or each read of the CPU's counter is trapped.
    SystemCall,
    /// The cost is unknown, for one of these reasons: the measurement is inconclusive,
    /// `CLOCK_MONOTONIC` is too coarse to measure a read with, the clock cannot be read or does not
    /// exist, or this build calls libc (docs/ABI.md).
    Unknown,
}

/// Measures what a read of this clock with [`clock_gettime`](crate::clock_gettime()) costs.
///
/// The answer tells what a read costs. It does not tell which function reads the clock: the vDSO's
/// function may be the one that enters the kernel, for example if the kernel's clock source is
/// hpet.
///
/// No vDSO reads a CPU-time clock, an alarm clock or the clock of an open file
/// ([`ClockId::from_fd`]). If such a clock can be read, the answer is
/// [`SystemCall`](ReadCost::SystemCall), without a measurement.
///
/// The answer holds for the moment of the call. This is a timing test, which an interrupt or an
/// emulator can mislead; the package `vdso-doctor` proves where the clock is read. The call takes a
/// few microseconds and makes at most 16 system calls, including those that the vDSO makes.
///
/// # Examples
///
/// ```
/// use vdso_time::{ClockId, ReadCost, read_cost};
///
/// if read_cost(ClockId::MONOTONIC) == ReadCost::SystemCall {
///     eprintln!("each read of the clock enters the kernel: see docs/CLOCK_SOURCES.md");
/// }
/// ```
#[must_use]
pub fn read_cost(clock: ClockId) -> ReadCost {
    // If `NATIVE` is `None`, this build calls libc: libc answers both `calls::clock_gettime` and
    // `syscall::clock_gettime`, so there is nothing to compare.
    if NATIVE.is_none() {
        return ReadCost::Unknown;
    }
    if is_in_no_vdso(clock) || !matches!(routes().clock_gettime, Route::Vdso { .. }) {
        return match syscall::clock_gettime(clock) {
            Ok(_) => ReadCost::SystemCall,
            Err(_) => ReadCost::Unknown,
        };
    }
    let now = || match calls::clock_gettime(ClockId::MONOTONIC) {
        Ok(now) => Some(now.ktime() as u64),
        Err(_) => None,
    };
    compare(
        now,
        || calls::clock_gettime(clock).is_ok(),
        || syscall::clock_gettime(clock).is_ok(),
    )
}

/// Returns whether this clock is one that no kernel's vDSO reads.
pub(crate) fn is_in_no_vdso(clock: ClockId) -> bool {
    let clocks = [
        ClockId::PROCESS_CPUTIME,
        ClockId::THREAD_CPUTIME,
        ClockId::REALTIME_ALARM,
        ClockId::BOOTTIME_ALARM,
    ];
    // A negative id stands for the clock of an open file, or for the CPU time of another process or
    // thread.
    clock.as_raw() < 0 || clocks.contains(&clock)
}

/// The number of tries. A try makes four reads: one through the kernel, one through the vDSO, and
/// one of the measuring clock after each of these two. The measuring clock is also read once before
/// the first try. So three tries make 4 x 3 + 1 reads, and each read makes at most one system call.
const TRIES: usize = 3;

/// The times of a read through the kernel and of a read through the vDSO, in one try. Each time
/// includes one read of the measuring clock.
#[derive(Clone, Copy, Default)]
struct Try {
    kernel: u64,
    vdso: u64,
}

/// Compares a read through the vDSO with one through the kernel. `vdso` and `kernel` make such a
/// read, and return whether it succeeded. `now` reads the measuring clock.
#[must_use]
pub fn compare(
    now: impl Fn() -> Option<u64>,
    vdso: impl Fn() -> bool,
    kernel: impl Fn() -> bool,
) -> ReadCost {
    match measure(now, vdso, kernel) {
        Some(tries) => verdict(&tries),
        None => ReadCost::Unknown,
    }
}

/// Makes the tries and returns their times, or `None` if a read fails or the measuring clock goes
/// back.
fn measure(
    now: impl Fn() -> Option<u64>,
    vdso: impl Fn() -> bool,
    kernel: impl Fn() -> bool,
) -> Option<[Try; TRIES]> {
    let mut tries = [Try::default(); TRIES];
    let mut start = now()?;
    for passed in &mut tries {
        if !kernel() {
            return None;
        }
        let middle = now()?;
        if !vdso() {
            return None;
        }
        let end = now()?;
        passed.kernel = middle.checked_sub(start)?;
        passed.vdso = end.checked_sub(middle)?;
        start = end;
    }
    Some(tries)
}

/// Returns what the times show.
///
/// Each time includes a read of the measuring clock, which usually goes through the vDSO as well.
/// For example, if a read through the vDSO takes 20 ns and a system call takes 200 ns, the times to
/// compare are 40 ns and 220 ns.
///
/// The verdict is `FunctionCall` if the system call's time is at least a quarter longer than the
/// vDSO's time, plus a margin for the unit of the clock. Times of 60 ns and 75 ns are at this
/// limit. They mean that a read through the vDSO takes 30 ns and a system call 45 ns: this is where
/// the two thirds in [`ReadCost::FunctionCall`] come from.
///
/// The read of the measuring clock need not be subtracted from the times. If the vDSO's function
/// enters the kernel as well, the two times are equally long, with the measuring read or without
/// it.
fn verdict(tries: &[Try; TRIES]) -> ReadCost {
    // An interrupt only adds time. So the shortest time in all tries counts, for the kernel and for
    // the vDSO separately.
    let mut kernel = u64::MAX;
    let mut vdso = u64::MAX;
    for tried in tries {
        kernel = kernel.min(tried.kernel);
        vdso = vdso.min(tried.vdso);
    }
    let Some(unit) = unit(tries) else {
        return ReadCost::Unknown;
    };
    let quarter = vdso / 4;
    let noise = unit.saturating_mul(2);
    if kernel >= vdso.saturating_add(quarter).saturating_add(noise) {
        return ReadCost::FunctionCall;
    }
    let is_as_long = kernel >= vdso - quarter && kernel <= vdso.saturating_add(vdso / 8);
    if is_as_long && quarter >= unit {
        return ReadCost::SystemCall;
    }
    ReadCost::Unknown
}

/// Returns the unit in which the measuring clock advances, which can be longer than a read takes.
/// All times are multiples of it, so it is estimated as the smallest difference between two times,
/// or between a time and 0.
fn unit(tries: &[Try; TRIES]) -> Option<u64> {
    let mut unit = None;
    for a in tries {
        for b in tries {
            for time in [a.kernel, a.vdso] {
                for other in [0, b.kernel, b.vdso] {
                    let apart = time.abs_diff(other);
                    if apart > 0 && unit.is_none_or(|unit| apart < unit) {
                        unit = Some(apart);
                    }
                }
            }
        }
    }
    unit
}
