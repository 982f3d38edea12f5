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
/// few microseconds, or longer if each read enters the kernel and reads a slow device. It makes the
/// system call clock_gettime(2) at most 20 times, including the calls that the vDSO makes. In a
/// 32-bit program whose sandbox denies clock_gettime64(2), it can make 44. If it is the first call
/// of the process, it also makes the system calls of [`warm_up`](crate::warm_up).
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
    let vdso = || calls::clock_gettime(clock).is_ok();
    compare(now, vdso, syscall::single_read(clock))
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

/// The number of tries. A try makes five reads: one of the measuring clock alone, one through the
/// kernel, one through the vDSO, and one of the measuring clock after each of these two. The
/// measuring clock is also read once before the first try. So three tries make 5 x 3 + 1 reads.
/// Each read makes at most one system call, unless a sandbox denies clock_gettime64(2) to a 32-bit
/// program. `single_read` makes up to two calls before that.
const TRIES: usize = 3;

/// The times of three reads: one of the measuring clock alone, one through the kernel, and one
/// through the vDSO. The times of the other two reads include one read of the measuring clock.
#[derive(Clone, Copy)]
struct Times {
    clock: u64,
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
) -> Option<[Times; TRIES]> {
    let none = Times {
        clock: 0,
        kernel: 0,
        vdso: 0,
    };
    let mut tries = [none; TRIES];
    let mut start = now()?;
    for tried in &mut tries {
        let begin = now()?;
        if !kernel() {
            return None;
        }
        let middle = now()?;
        if !vdso() {
            return None;
        }
        let end = now()?;
        tried.clock = begin.checked_sub(start)?;
        tried.kernel = middle.checked_sub(begin)?;
        tried.vdso = end.checked_sub(middle)?;
        start = end;
    }
    Some(tries)
}

/// Returns what the times show.
///
/// The time of the measuring clock is subtracted, because it can be far longer than the times to
/// compare: with the clock source hpet, a read of `CLOCK_MONOTONIC` takes a microsecond or more.
/// But the vDSO still reads a coarse clock in 5 ns, where a system call takes 100 ns.
///
/// The verdict is `FunctionCall` if the system call takes one and a half times as long as the read
/// through the vDSO, plus a margin. This is where the two thirds in [`ReadCost::FunctionCall`] come
/// from. The verdict is `SystemCall` if the two take about as long. A difference that is smaller
/// than the margin shows nothing, because the measuring clock does not show it: it advances in
/// units, and its own reads do not all take the same time.
fn verdict(tries: &[Times; TRIES]) -> ReadCost {
    // An interrupt only adds time. So the shortest time in all tries counts, for each of the three
    // reads separately.
    let [mut shortest, others @ ..] = *tries;
    for tried in others {
        shortest.clock = shortest.clock.min(tried.clock);
        shortest.kernel = shortest.kernel.min(tried.kernel);
        shortest.vdso = shortest.vdso.min(tried.vdso);
    }
    let Some(unit) = unit(tries) else {
        return ReadCost::Unknown;
    };
    let kernel = shortest.kernel.saturating_sub(shortest.clock);
    let vdso = shortest.vdso.saturating_sub(shortest.clock);
    let margin = unit.saturating_mul(2).max(shortest.clock / 16);
    if kernel >= vdso.saturating_add(vdso / 2).saturating_add(margin) {
        return ReadCost::FunctionCall;
    }
    let half = vdso / 2;
    let is_as_long = kernel >= vdso - half && kernel <= vdso.saturating_add(vdso / 4);
    // The reads of the measuring clock do not all take the same time. While the CPU slows down,
    // that alone makes both reads look equally long.
    if is_as_long && half >= margin.max(shortest.clock / 4) {
        return ReadCost::SystemCall;
    }
    ReadCost::Unknown
}

/// Returns the unit in which the measuring clock advances, which can be longer than a read takes.
/// All times are multiples of it, so it is estimated as the smallest difference between two times,
/// or between a time and 0.
///
/// A unit such as 41.67 ns is rounded, so two times of equally many ticks can differ by 1 ns, which
/// then counts as the unit. We tried to ignore differences of 1 ns. But where each read takes the
/// same time again, the unit was then taken for much longer than it is, and fast clocks were
/// `Unknown`.
fn unit(tries: &[Times; TRIES]) -> Option<u64> {
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
