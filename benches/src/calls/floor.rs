//! The least that a clock on the counter does.

use std::sync::atomic::{AtomicU64, Ordering};

use vdso_time::Instant;

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
    if past < u64::MAX - word(3) {
        nanos
    } else {
        other()
    }
}

#[cold]
#[inline(never)]
fn other() -> u64 {
    word(1)
}

/// Compares the counter with a word, reads the vDSO if the word is out of date, and keeps the
/// answer in the same cache line.
#[inline(never)]
pub(super) fn rested() -> u64 {
    if line(super::ticks) == 0 {
        return other();
    }
    let nanos = Instant::now().as_nanos() as u64;
    LINE.0[3]
        .fetch_max(nanos >> 32, Ordering::Relaxed)
        .max(nanos)
}
