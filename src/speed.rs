//! A quick test by time: is a read by the vDSO much faster than a system call?

use crate::arch::NATIVE;
use crate::routes::Route;
use crate::sys::{calls, routes, syscall};
use crate::types::ClockId;

/// Returns whether [`clock_gettime`] reads this clock much faster than a system call does.
///
/// - `Some(true)`: it takes at most two thirds of the time. So the vDSO reads the clock in user
///   space.
/// - `Some(false)`: it takes about as long. Then [`routes`](crate::routes()) names no vDSO
///   function, or the vDSO enters the kernel, or each read of the counter is trapped. For a
///   negative id and the CPU time of a process, which only the kernel knows, nothing is measured.
/// - `None`: the times say neither, `CLOCK_MONOTONIC` is too coarse, the clock cannot be read, or
///   this build calls libc (docs/ABI.md).
///
/// [`clock_gettime`]: crate::clock_gettime()
///
/// The answer holds for this moment. It is a test by time, so an interrupt or an emulator can
/// mislead it; the package `vdso-doctor` has a proof. The call takes some microseconds and makes at
/// most 16 system calls, those of the vDSO included.
///
/// # Examples
///
/// ```
/// use vdso_time::{ClockId, is_faster_than_syscall};
///
/// if is_faster_than_syscall(ClockId::MONOTONIC) == Some(false) {
///     eprintln!("each read of the clock enters the kernel: see docs/CLOCK_SOURCES.md");
/// }
/// ```
#[must_use]
pub fn is_faster_than_syscall(clock: ClockId) -> Option<bool> {
    NATIVE?; // without a table, libc makes the system calls
    let is_cpu_time = clock == ClockId::PROCESS_CPUTIME || clock.as_raw() < 0;
    if is_cpu_time || !matches!(routes().clock_gettime, Route::Vdso { .. }) {
        return syscall::clock_gettime(clock).ok().map(|_| false);
    }
    let now = || {
        calls::clock_gettime(ClockId::MONOTONIC)
            .ok()
            .map(|now| now.ktime() as u64)
    };
    let by_vdso = || calls::clock_gettime(clock).ok().map(drop);
    compare(now, by_vdso, || {
        syscall::clock_gettime(clock).ok().map(drop)
    })
}

/// Returns whether `by_vdso` is much faster than `by_kernel`, by a clock that `now` reads.
///
/// If `now` and `by_vdso` both enter the kernel, the two intervals are as long. So they are
/// compared as they are, without an estimate of what `now` takes.
#[allow(clippy::missing_errors_doc, reason = "hidden")]
pub fn compare(
    now: impl Fn() -> Option<u64>,
    by_vdso: impl Fn() -> Option<()>,
    by_kernel: impl Fn() -> Option<()>,
) -> Option<bool> {
    /// 4 x 3 + 1 reads, each at most one system call.
    const TRIES: usize = 3;
    let mut tries = [[0; 2]; TRIES];
    let mut start = now()?;
    for passed in &mut tries {
        by_kernel()?;
        let middle = now()?;
        by_vdso()?;
        let end = now()?;
        *passed = [middle.checked_sub(start)?, end.checked_sub(middle)?];
        start = end;
    }
    // An interrupt only adds, so the shortest of all tries counts.
    let [kernel, vdso] = tries.iter().fold([u64::MAX; 2], |least, tried| {
        [least[0].min(tried[0]), least[1].min(tried[1])]
    });
    // The clock's unit can be longer than a read. Then all differences are multiples of it.
    let all = tries.as_flattened();
    let apart = all
        .iter()
        .flat_map(|a| all.iter().map(|b| a.abs_diff(*b)))
        .chain(all.iter().copied());
    let unit = apart.filter(|&apart| apart > 0).min()?;
    if kernel
        >= vdso
            .saturating_add(vdso / 4)
            .saturating_add(unit.saturating_mul(2))
    {
        return Some(true);
    }
    let is_as_long = (vdso - vdso / 4..=vdso.saturating_add(vdso / 8)).contains(&kernel);
    (vdso / 4 >= unit && is_as_long).then_some(false)
}
