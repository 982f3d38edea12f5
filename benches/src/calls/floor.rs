//! The least that a clock on the counter does.

use std::sync::atomic::{AtomicU64, Ordering};

#[repr(align(64))]
struct Line([AtomicU64; 4]);

static LINE: Line = Line([const { AtomicU64::new(1) }; 4]);

fn word(at: usize) -> u64 {
    LINE.0[at].load(Ordering::Relaxed)
}

/// Returns the time of a read of the counter.
#[inline]
pub(super) fn line(ticks: impl FnOnce() -> u64) -> u64 {
    let past = ticks().wrapping_sub(word(0));
    let nanos = word(1).wrapping_add(past.wrapping_mul(word(2)) >> 32);
    if past < u64::MAX - word(3) { nanos } else { other() }
}

#[cold]
#[inline(never)]
fn other() -> u64 {
    word(1)
}
