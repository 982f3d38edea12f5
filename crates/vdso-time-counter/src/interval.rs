//! [`Interval`]: the limits of the true time.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use vdso_time::{Errno, SystemTime};

use super::bounded::{Bounds, ClockStatus, GROWTH};
use super::global::CLOCK;

static BOUNDS: Bounds = Bounds::new();
static MAX_DRIFT: AtomicU32 = AtomicU32::new(GROWTH as u32);

/// The limits of the true time (UTC without leap seconds), from [`realtime_bounded`].
///
/// The truth is within the limits, *whatever the status is*. If no bound is known, the limits are
/// the whole range, from 1677 to 2262. So a comparison of two intervals never orders two events
/// wrongly.
///
/// | who | promises |
/// |---|---|
/// | the program that keeps the clock | that the error which it states is a bound |
/// | the kernel | that `maxerror` grows by 500 us a second, and becomes 16 s if the clock is set |
/// | this crate | the sum, the counter's own error, and no bound where none was stated |
///
/// | program | [status](ClockStatus) |
/// |---|---|
/// | chronyd with `rtcsync`, ntpd, NTPsec, ClockBound 3, BusyBox ntpd | `Synchronized` |
/// | chronyd without `rtcsync` | `FreeRunning` |
/// | systemd-timesyncd, phc2sys, ptp4l; ntpd by the kernel's PPS; no program | `Unknown` |
/// | PTPd 2.3 states its last offset, which is no bound | must not be used |
///
/// `docs/TRUE_TIME.md` in the repository says what each of them writes, with its source.
///
/// # What ends the promise
///
/// - The program states less than its error: by its configuration (`maxclockerror` of chronyd is 1
///   ppm by default; ClockBound advises 50), or because its servers lie.
/// - Two programs keep the clock, or somebody slews it and states no error.
/// - The program is killed while it slews: then the slew goes on.
/// - A virtual machine is moved, restored or stopped and has no VM clock that this process may read
///   (`/dev/vmclock0`, Linux 6.13). With a VM clock the status is `Disrupted` until the program has
///   stated an error again. A program may do so by measurements from before.
/// - The system resumes after a suspend: for at most 17 ms. Then the status is `Disrupted`, too.
/// - The program moves the clock away from the truth and states a larger error, because it follows
///   a worse server: for at most a second, in which the old statement is used.
/// - A leap second is smeared: then the limits are those of the smeared time.
/// - The events of [Accuracy](super#accuracy), except that somebody sets the clock.
///
/// If the kernel is to insert or delete a second (`STA_INS`, `STA_DEL`), the status is `Unknown`
/// from two seconds before midnight UTC until two seconds after it.
///
/// # Examples
///
/// The commit wait of a database. After it, no machine takes an earlier time for a later event.
///
/// ```
/// use std::{thread, time::Duration};
/// use vdso_time::{Errno, SystemTime};
/// use vdso_time_counter::realtime_bounded;
///
/// /// The time of a commit; none while no bound is known.
/// fn commit() -> Result<Option<SystemTime>, Errno> {
///     let now = realtime_bounded()?;
///     let mut later = now;
///     while now.status.is_bounded() && later.status.is_bounded() {
///         if now.latest < later.earliest {
///             return Ok(Some(now.latest));
///         }
///         thread::sleep(Duration::from_millis(1));
///         later = realtime_bounded()?;
///     }
///     Ok(None)
/// }
/// # // It takes as long as the interval is wide: here, at most 16 s.
/// # if realtime_bounded().is_ok_and(|now| !now.status.is_bounded()) {
/// #     assert_eq!(commit(), Ok(None));
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Interval {
    /// The true time is not earlier.
    pub earliest: SystemTime,
    /// The true time is not later.
    pub latest: SystemTime,
    /// Whether a bound of the error is known, and by whom.
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
/// A sandbox may kill for adjtimex(2), as Android's may. After
/// [`forbid_system_calls`](super::forbid_system_calls) this does not make the call.
///
/// # Errors
///
/// - `EPERM`, if a sandbox denies the clocks, or else its error for adjtimex(2).
/// - `EPERM` after `forbid_system_calls`, from a second after the last answer of the kernel on.
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
