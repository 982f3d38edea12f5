//! What a program can ask about the clock: is the counter used, will it be, how true is it.

use super::CLOCK;
use super::status::{State, Status};
use crate::linux::native;

/// Returns the number of [`ticks`](super::ticks) in a second, once it is measured: `None` before
/// that, and where the counter is not used.
///
/// Where `ticks` returns nanoseconds, the number is 1,000,000,000.
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
    of_ticks(CLOCK.frequency())
}

/// The number of [`ticks`](super::ticks) in a second, given that of the counter.
fn of_ticks(frequency: Option<u64>) -> Option<u64> {
    if native::counter::IS_READABLE { frequency } else { frequency.and(Some(1_000_000_000)) }
}

/// Returns how far [`monotonic`](super::monotonic) may be from `CLOCK_MONOTONIC`, in nanoseconds.
///
/// While the vDSO answers, the bound is the time by which the answer is ahead of the kernel's clock
/// because it does not go back: usually 0. [Accuracy](super#accuracy) says after which events the
/// bound does not hold until the line ends. This function reads the same clocks as
/// [`monotonic`](super::monotonic).
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
/// The answer can change at once, when a line ends. Use [`state`] for values that belong together.
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
/// Three calls would be of three moments: a line can end between two of them.
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
    State { frequency: of_ticks(state.frequency), ..state }
}

/// Asks whether the counter will be used in this process, without waiting until it is measured.
///
/// The answer is the kernel's verdict of this moment on the counter and on this thread's right to
/// read it. [`status`] comes to it after some reads, or to [`Status::Frequency`] if the measured
/// rate is not the stated one. A program can ask before its first read, to choose a clock.
///
/// Each call makes system calls: `prctl`, `openat`, `read` and `close`. Before them come those of the
/// first call of this crate. The clock stays as it is.
///
/// # Errors
/// Why the counter will not be used. If the clock has given the counter up already, it is the
/// reason for that.
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
