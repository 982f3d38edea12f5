//! [`recent`]: the time that the last [`refresh`] stored, by one load.
//!
//! # Memory ordering
//!
//! [`refresh`] loads the kept time and then has an `Acquire` fence. It reads the clock, and raises
//! the kept time after a `Release` fence. So a refresh that sees a kept time happens after the one
//! that stored it, and its own time is not earlier, except if the clock itself went back. For
//! [`recent`], coherence of the single atomic is enough.

use core::sync::atomic::{Ordering, fence};

use vdso_time::Instant;

use super::clocks::CounterMonotonic;
use super::high_water::HighWater;

/// 0 until the first refresh.
static RECENT: HighWater = HighWater::new();

/// Returns the time of the latest [`refresh`], by one load. If there was none, it refreshes.
///
/// It is for programs that read the clock very often and accept an old time, such as event loops:
/// call `refresh` once in each turn of the loop, or start a `Refresher` (feature `std`).
///
/// It is not earlier than any time that the same thread got from `recent` or `refresh` before, or
/// that another thread got from them and passed on. It can be earlier than other reads, because
/// they write nothing: use `recent().max(start)` if `start` is a time of another read. The
/// exceptions are those of [Order](super#order).
///
/// # Panics
///
/// As [`monotonic`](super::monotonic), at the first call.
#[inline]
#[must_use]
#[track_caller]
pub fn recent() -> Instant<CounterMonotonic> {
    match RECENT.get() {
        0 => refresh(),
        kept => Instant::from_nanos(kept as i64),
    }
}

/// Reads the clock, as [`CounterMonotonic::now`], and keeps the time for [`recent`].
///
/// # Panics
///
/// As [`monotonic`](super::monotonic).
#[track_caller]
pub fn refresh() -> Instant<CounterMonotonic> {
    let kept = RECENT.get();
    fence(Ordering::Acquire);
    let now = CounterMonotonic::now();
    fence(Ordering::Release);
    let nanos = now.as_nanos() as u64;
    if nanos < kept {
        // The clock went back: the process entered another time namespace. A failure means that
        // another thread has seen it too.
        let _ = RECENT.replace(kept, nanos);
    } else {
        let _ = RECENT.raise(nanos);
    }
    now
}
