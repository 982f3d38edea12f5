//! [`Interval`]: the limits of the true time.

use super::bounded::Bounds;
use super::{CLOCK, machine};
use vdso_time::{Errno, SystemTime};

static BOUNDS: Bounds = Bounds::new();

/// The limits of the true time (UTC without leap seconds), from [`realtime_bounded`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Interval {
    /// The true time is not earlier.
    pub earliest: SystemTime,
    /// The true time is not later.
    pub latest: SystemTime,
    /// Whether the kernel's clock is synchronized, by the program that disciplines it (`STA_UNSYNC`
    /// and `TIME_ERROR` of adjtimex(2)). If not, the limits have no meaning: `maxerror` is 16 s at
    /// most, however wrong the clock is.
    pub is_synchronized: bool,
}

/// Returns two limits between which the true time is.
///
/// The limits are the kernel's wall clock, plus and minus
///
/// - `maxerror` of adjtimex(2), which the program that disciplines the clock keeps (chronyd, ntpd,
///   systemd-timesyncd);
/// - 500 ppm of the time since the kernel updated that, which includes up to a second before the
///   read;
/// - the [`error_bound`](super::error_bound).
///
/// They are as true as `maxerror`. The kernel is asked once a second, and again if the wall clock
/// is set. A step is seen when [`realtime`](super::realtime) sees it. Until then the limits are
/// those of the clock before the step. If the kernel was slewing its clock by `tick`, that rate is
/// added to the 500 ppm. The events of [Accuracy](super#accuracy) apply, except the one for
/// `realtime`.
///
/// A sandbox may kill for adjtimex(2), as Android's may. After
/// [`forbid_checks`](super::forbid_checks) this does not make the call.
///
/// To order two events on two machines, compare `latest` of the first with `earliest` of the
/// second.
///
/// # Errors
///
/// - Mostly `EPERM`, if a sandbox denies adjtimex(2) or the clocks.
/// - `EPERM` after `forbid_checks`, from a second after the last answer of the kernel on.
/// - `ENOSYS` on systems other than Linux, and where every call goes through libc.
///
/// # Examples
///
/// ```
/// use vdso_time_counter as counter;
///
/// match counter::realtime_bounded() {
///     Ok(now) if now.is_synchronized => println!("{:?} to {:?}", now.earliest, now.latest),
///     Ok(_) => println!("nothing disciplines this clock"),
///     Err(error) => println!("a sandbox denies it: {error}"),
/// }
/// ```
pub fn realtime_bounded() -> Result<Interval, Errno> {
    let Some(limits) = BOUNDS.limits(&CLOCK) else {
        // Denied, so a second call returns the error.
        super::kernels_realtime()?;
        let is_asked = CLOCK.may_check().then(machine::discipline);
        return Err(is_asked.map_or(Errno::EPERM, |answer| answer.err().unwrap_or(Errno::ENOSYS)));
    };
    let [earliest, latest] = limits.times.map(SystemTime::from_nanos);
    Ok(Interval { earliest, latest, is_synchronized: limits.is_synchronized })
}
