//! The wall clock: the monotonic clock plus an *offset*, which the state keeps.
//!
//! The offset of the kernel's two clocks is constant until somebody sets the clock, a leap second
//! comes, the system resumes, or the process enters another time namespace. So it is measured once
//! and kept: another measurement would move the wall clock by its error.

use super::sample::{middle, offset_to};
use super::source::Source;

/// The turns of a measurement, which takes a microsecond.
const TURNS: u32 = 16;
/// A smaller difference of two offsets, in nanoseconds, can be an error of the measurements.
pub(crate) const NOISE: i64 = 500;

/// Measures the offset. Returns the old one if it is possible.
pub(crate) fn offset<S: Source>(source: &S, old: i64) -> Option<i64> {
    let possible = offset_to(source, TURNS, S::realtime)?;
    let [low, high] = possible;
    if is_possible(old, possible) {
        return Some(old);
    }
    // If each turn was interrupted, the middle can be far from the truth. Then the least possible
    // offset is safe: a later one moves the wall clock forward.
    Some(if high.saturating_sub(low) > 2 * NOISE {
        low
    } else {
        middle(possible)
    })
}

/// Returns whether an offset can be in the interval, but for an error of the measurement.
pub(crate) fn is_possible(offset: i64, [low, high]: [i64; 2]) -> bool {
    (low.saturating_sub(NOISE)..=high.saturating_add(NOISE)).contains(&offset)
}
