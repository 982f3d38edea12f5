//! [`Interval`]: the limits of the true time.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use vdso_time::{Errno, SystemTime};

use super::bounded::{Bounds, ClockStatus, GROWTH};
use super::global::CLOCK;

static BOUNDS: Bounds = Bounds::new();
static MAX_DRIFT: AtomicU32 = AtomicU32::new(GROWTH as u32);

#[doc = include_str!("true_time.md")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Interval {
    /// The true time is not earlier.
    pub earliest: SystemTime,
    /// The true time is not later.
    pub latest: SystemTime,
    /// Whether a bound of the error is known.
    pub status: ClockStatus,
}

/// Returns two limits between which the true time is.
///
/// The limits are the kernel's wall clock, plus and minus
///
/// - `maxerror` of adjtimex(2): the error that the program states which keeps the clock;
/// - `offset` of adjtimex(2), which the kernel has yet to correct, and a third of it, which it may
///   be correcting at the moment;
/// - the [drift](set_max_drift_ppb) since the statement, and that of one second more;
/// - the [error bound](super::State::error_bound), and 3 us for rounding.
///
/// The kernel is asked once a second, and again if the wall clock is set. So what a program stated,
/// and the status, are up to a second old. A step is seen when [`realtime`](super::realtime) sees
/// it. Until then the limits are those of the clock before the step. Each call looks at a VM clock.
///
/// A sandbox may kill for adjtimex(2), as Android's may.
///
/// # Errors
///
/// - `EPERM`, if a sandbox denies the clocks, or else its error for adjtimex(2).
/// - `EPERM` after [`forbid_system_calls`](super::forbid_system_calls), from a second after the
///   last answer of the kernel on.
/// - `ENOSYS` on systems other than Linux, and where every call goes through libc.
pub fn realtime_bounded() -> Result<Interval, Errno> {
    let limits = BOUNDS.limits(&CLOCK, MAX_DRIFT.load(Relaxed))?;
    let [earliest, latest] = limits.times.map(SystemTime::from_nanos);
    Ok(Interval { earliest, latest, status: limits.status })
}

/// Sets how much faster or slower than the truth the clock is at most, in parts per billion, since
/// a program stated its error. [`realtime_bounded`] uses it in the whole process.
///
/// The default is 500,000: what the kernel adds to `maxerror`, and what it corrects at most. So it
/// is right for every oscillator that NTP can keep. Set less only if you know the oscillator:
/// ClockBound advises 50,000, and `maxclockerror 50` in chronyd's configuration.
///
/// The drift is counted from the first call after a statement. Until then it is the kernel's. So a
/// smaller value has an effect if the calls come more often than the statements.
pub fn set_max_drift_ppb(ppb: u32) {
    MAX_DRIFT.store(ppb, Relaxed);
}
