//! The clock that times reads, and its own cost.

use core::sync::atomic::{AtomicU64, Ordering};

use vdso_time::{Clock as _, ClockId, Instant, Monotonic, syscall};

/// Nanoseconds between two reads with nothing between them.
static EMPTY_SPAN: AtomicU64 = AtomicU64::new(0);

/// Returns nanoseconds of `CLOCK_MONOTONIC`, or 0 where a sandbox denies it.
#[inline]
pub(crate) fn now() -> i64 {
    Monotonic::try_now().map_or(0, Instant::as_nanos)
}

pub(crate) fn empty_span() -> u64 {
    EMPTY_SPAN.load(Ordering::Relaxed)
}

pub(crate) fn measure_empty_span() {
    EMPTY_SPAN.store(shortest(|| ()), Ordering::Relaxed);
}

/// Measures a system call that reads a clock, in nanoseconds.
pub(crate) fn system_call() -> u64 {
    let call = || {
        let _ = syscall::clock_gettime(ClockId::MONOTONIC); // only its duration matters
    };
    shortest(call).saturating_sub(empty_span())
}

/// Returns the shortest of 64 spans, because interruptions only make a span longer.
fn shortest(work: impl Fn()) -> u64 {
    let span = |_| {
        let start = now();
        work();
        (now() - start).max(0) as u64
    };
    (0..64).map(span).min().unwrap_or(0)
}
