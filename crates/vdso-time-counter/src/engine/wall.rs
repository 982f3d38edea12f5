//! The wall clock: the monotonic clock plus an *offset*, which the state keeps.
//!
//! The offset is the difference between the kernel's `CLOCK_REALTIME` and `CLOCK_MONOTONIC`. It is
//! constant until the wall clock is set, a leap second comes, the system resumes from a suspend, or
//! the process enters another time namespace. Each measurement of the offset has an error, and the
//! wall clock would move by that error if each new measurement were used. So an offset that was
//! measured is kept until a later measurement shows that it cannot be right any more.
//!
//! The result of a measurement is an interval that certainly contains the offset. Its width is
//! about the time of a *turn*, a read of each of the two clocks, so all limits here are relative to
//! a turn. An earlier version had a fixed limit of 1 us: if the interval was wider, the measurement
//! counted as interrupted, and the low end of the interval was used. In an emulator, where a read
//! takes 600 ns, every interval is wider than 1 us. So the wall clock was 545 ns late there for the
//! life of the process.

use super::sample::Interval;
use super::source::Source;

/// The number of turns of a measurement. All of them together take about a microsecond.
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
