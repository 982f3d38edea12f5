//! The clock that reads are timed by, and what that costs.

use core::sync::atomic::{AtomicU64, Ordering};

use vdso_time::{Clock as _, ClockId, Instant, Monotonic, syscall};

/// How often something is measured, the least of which counts: what comes between only makes it longer.
const TIMES: usize = 64;

/// Nanoseconds of `CLOCK_MONOTONIC`; 0 where a sandbox denies it.
#[inline]
pub(crate) fn now() -> i64 {
    Monotonic::try_now().map_or(0, Instant::as_nanos)
}

/// What lies between two times with nothing between them.
static OWN: AtomicU64 = AtomicU64::new(0);

pub(crate) fn own() -> u64 {
    OWN.load(Ordering::Relaxed)
}

pub(crate) fn measure_own() {
    OWN.store(least(|| ()), Ordering::Relaxed);
}

/// A system call that reads a clock, in nanoseconds.
pub(crate) fn system_call() -> u64 {
    let call = || {
        let _ = syscall::clock_gettime(ClockId::MONOTONIC); // how long it takes is all that is asked
    };
    least(call).saturating_sub(own())
}

fn least(work: impl Fn()) -> u64 {
    let time = |_| {
        let start = now();
        work();
        (now() - start).max(0) as u64
    };
    (0..TIMES).map(time).min().unwrap_or(0)
}
