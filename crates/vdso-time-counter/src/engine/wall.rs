//! The wall clock: the monotonic clock plus an *offset*, which the state keeps.
//!
//! The offset between the kernel's two clocks is constant until the clock is set, a leap second
//! comes, the system resumes, or the process enters another time namespace. So the offset is
//! measured once and kept. Each new measurement has an error, and would move the wall clock by that
//! error.
//!
//! The result of a measurement is an interval that certainly contains the offset. Its width is
//! about the time of a *turn*, a read of each of the two clocks, so all limits here are relative to
//! a turn. With a fixed limit of 1 us, each measurement in an emulator, where a read takes 600 ns,
//! was taken for a disturbed one, and the wall clock was 545 ns late for the life of the process.

use super::sample::Interval;
use super::source::Source;

/// The number of turns of a measurement, which takes about a microsecond.
const TURNS: u32 = 16;

/// Measures the interval of the possible offsets.
pub(crate) fn measure<S: Source>(source: &S) -> Option<Interval> {
    Interval::measure(source, TURNS, S::realtime)
}

/// Returns whether the wall clock can still have the offset `old`, which was measured before.
///
/// `turn` is the longest time that an undisturbed turn takes, or 0 if that is not known. `old`
/// comes from an earlier measurement, whose error is at most about a turn. So `old` is kept even if
/// it is outside of the interval by up to a turn.
pub(crate) fn is_kept(old: i64, possible: &Interval, turn: u64) -> bool {
    let error = possible.shortest.max(turn);
    (possible.low.saturating_sub_unsigned(error)..=possible.high.saturating_add_unsigned(error))
        .contains(&old)
}

/// Returns the best offset in the interval, without regard to an earlier one.
///
/// If each turn was interrupted, the middle can be far from the true offset. In that case the least
/// possible offset is safe, because a later measurement can then only move the wall clock forward.
pub(crate) fn best(possible: &Interval, turn: u64) -> i64 {
    if possible.width() > turn {
        possible.low
    } else {
        possible.middle()
    }
}
