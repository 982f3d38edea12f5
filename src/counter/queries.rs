//! The public queries: whether the counter is used, whether it will be, and how accurate it is.

use super::CLOCK;
use super::status::{State, Status};
use crate::linux::native;

/// Returns the number of [`ticks`](super::ticks) per second, once it is measured.
///
/// Returns `None` while the counter is not used. Where `ticks` returns nanoseconds, the number is
/// 1,000,000,000.
///
/// # Examples
///
/// ```
/// use vdso_time::counter;
///
/// if let Some(hertz) = counter::frequency() {
///     println!("a tick is {} ps", 1_000_000_000_000 / hertz);
/// }
/// ```
#[must_use]
pub fn frequency() -> Option<u64> {
    tick_frequency(CLOCK.frequency())
}

/// The frequency of [`ticks`](super::ticks), given the counter's.
fn tick_frequency(frequency: Option<u64>) -> Option<u64> {
    if native::counter::IS_READABLE { frequency } else { frequency.and(Some(1_000_000_000)) }
}

/// Returns how far the next [`monotonic`](super::monotonic) may be from `CLOCK_MONOTONIC`, in
/// nanoseconds.
///
/// While the vDSO answers, the bound is the lead that the clock keeps because it does not go back:
/// usually 0. If another thread or a signal handler makes a segment before the next read, the bound
/// of that segment applies. [Accuracy](super#accuracy) lists the events after which the bound does
/// not hold until the segment ends. This function reads the same clocks as
/// [`monotonic`](super::monotonic).
///
/// # Examples
///
/// ```
/// assert!(vdso_time::counter::error_bound() < 100_000);
/// ```
#[must_use]
pub fn error_bound() -> u64 {
    state().error_bound
}

/// Returns whether the counter is used, or why not.
///
/// The status can change at any time, when a segment ends. Use [`state`] for values that belong
/// together.
///
/// # Examples
///
/// ```
/// println!("{}", vdso_time::counter::status());
/// ```
#[must_use]
pub fn status() -> Status {
    CLOCK.status()
}

/// Returns the [`status`], the [`error_bound`] and the [`frequency`] of one moment.
///
/// Between two separate calls a segment can end.
///
/// # Examples
///
/// ```
/// use vdso_time::counter;
///
/// let now = counter::monotonic();
/// let state = counter::state();
/// println!("{now} ns, give or take {} ns: {}", state.error_bound, state.status);
/// ```
#[must_use]
pub fn state() -> State {
    let state = CLOCK.state();
    State { frequency: tick_frequency(state.frequency), ..state }
}

/// Checks whether the counter will be used in this process, before it is measured.
///
/// It asks the kernel whether it keeps its time by the counter and whether this thread may read it.
/// After some reads, [`status`] agrees, or is [`Status::Frequency`] if the measured rate is not the
/// stated one. A program can call this before its first read, to choose a clock.
///
/// Each call makes system calls: `prctl`, `openat`, `read` and `close`. The first one also makes
/// those of the first call of this crate. The clock does not change.
///
/// # Errors
///
/// The reason why the counter will not be used, or was given up.
///
/// # Examples
///
/// ```
/// use vdso_time::counter;
///
/// match counter::check() {
///     Ok(()) => println!("reads will use the counter"),
///     Err(why) => println!("the vDSO will answer: {why}"),
/// }
/// ```
pub fn check() -> Result<(), Status> {
    CLOCK.check()
}
