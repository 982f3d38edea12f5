//! [`Interval`]: the limits of the true time.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use vdso_time::{Errno, SystemTime};

use super::bounded::{Bounds, ClockStatus, GROWTH};
use super::global::CLOCK;

static BOUNDS: Bounds = Bounds::new();
static MAX_DRIFT: AtomicU32 = AtomicU32::new(GROWTH as u32);

/// The limits of the true time (UTC without leap seconds), from [`realtime_bounded`].
///
/// # What is promised, and by whom
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
/// # What each program states
///
/// | program | what it writes to `maxerror` | [status](ClockStatus) | |
/// |---|---|---|---|
/// | chronyd with `rtcsync` | root distance, and what it has yet to slew | `Synchronized` | 1 |
/// | chronyd without `rtcsync` | the same; `STA_UNSYNC` stays set | `FreeRunning` | 1 |
/// | chronyd without a source | 16 s | `Unknown` | 1 |
/// | ntpd, NTPsec | root distance; the kernel slews by `offset` | `Synchronized` | 2 |
/// | ntpd, by the kernel's PPS | the same; `offset` is not all of it | `Unknown` | 2 |
/// | ClockBound 3 (a beta) | its error bound; the kernel slews by `offset` | `Synchronized` | 3 |
/// | BusyBox ntpd | root distance; the kernel slews by `offset` | `Synchronized` | 4 |
/// | BusyBox ntpd, older | nothing, so it is 16 s | `Unknown` | 4 |
/// | systemd-timesyncd | 0 | `Unknown` | 5 |
/// | phc2sys, ptp4l | 0 | `Unknown` | 6 |
/// | PTPd 2.3 | the last offset from its master: *no bound* | must not be used | 7 |
/// | no program | nothing, so it is 16 s | `Unknown` | 8 |
///
/// 1. chrony: `set_sync_status` in sys_timex.c and sys_generic.c, `REF_SetUnsynchronised` in
///    reference.c.
/// 2. ntp and NTPsec: `local_clock` in ntpd/ntp_loopfilter.c. Linux: `hardpps_update_phase` in
///    kernel/time/ntp.c.
/// 3. clock-bound 3.0.0-beta.1: `Timex::apply_phase_correction` in src/daemon/time/timex.rs.
/// 4. BusyBox: `update_local_clock` in networking/ntpd.c.
/// 5. systemd: `manager_adjust_clock` in src/timesync/timesyncd-manager.c.
/// 6. linuxptp: `sysclk_set_sync` in clockadj.c.
/// 7. PTPd: `informClockSource` in src/dep/sys.c.
/// 8. Linux: `ntp_clear` in kernel/time/ntp.c.
///
/// A stated 0 is recognised later: the kernel adds 500 us each second, so `maxerror` stays a
/// multiple of 500 us until a program writes it again. One true bound in 500 is such a multiple,
/// too. Then the status is `Unknown` until the next statement.
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
/// # Leap seconds
///
/// If the kernel is to insert or delete a second (`STA_INS`, `STA_DEL`), the status is `Unknown`
/// from two seconds before midnight UTC until two seconds after it. There the kernel's clock steps
/// by a second, up to a timer tick late, and an inserted second has the same number as the one
/// before it. `maxerror` does not include that.
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
///     if !now.status.is_bounded() {
///         return Ok(None);
///     }
///     loop {
///         let later = realtime_bounded()?;
///         if !later.status.is_bounded() {
///             return Ok(None);
///         }
///         if now.latest < later.earliest {
///             return Ok(Some(now.latest));
///         }
///         thread::sleep(Duration::from_millis(1));
///     }
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
/// - `maxerror` of adjtimex(2): the error that the program states which keeps the clock, such as
///   chronyd;
/// - `offset` of adjtimex(2), which the kernel has yet to correct, and a third of it, which it may
///   be correcting at the moment;
/// - the [drift](set_max_drift_ppb) since the statement, 500 ppm by default, and that of one second
///   more;
/// - the [error bound](super::State::error_bound), and 3 us for rounding.
///
/// If no program stated an error, they are the whole range. [`Interval`] says which program states
/// what, and what ends the promise.
///
/// The kernel is asked once a second, and again if the wall clock is set. So what a program stated,
/// and the status, are up to a second old. A step is seen when [`realtime`](super::realtime) sees
/// it. Until then the limits are those of the clock before the step. Each call looks at a VM clock.
///
/// A sandbox may kill for adjtimex(2), as Android's may. After
/// [`forbid_system_calls`](super::forbid_system_calls) this does not make the call.
///
/// To order two events on two machines, compare `latest` of the first with `earliest` of the
/// second.
///
/// # Errors
///
/// - Mostly `EPERM`, if a sandbox denies adjtimex(2) or the clocks.
/// - `EPERM` after `forbid_system_calls`, from a second after the last answer of the kernel on.
/// - `ENOSYS` on systems other than Linux, and where every call goes through libc.
///
/// # Examples
///
/// ```
/// use vdso_time_counter as counter;
///
/// match counter::realtime_bounded() {
///     Ok(now) if now.status.is_bounded() => println!("{:?} to {:?}", now.earliest, now.latest),
///     Ok(now) => println!("no bound is known: {:?}", now.status),
///     Err(error) => println!("a sandbox denies it: {error}"),
/// }
/// ```
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
///
/// # Examples
///
/// ```
/// use vdso_time_counter as counter;
///
/// counter::set_max_drift_ppb(50_000);
/// println!("{:?}", counter::realtime_bounded());
/// ```
pub fn set_max_drift_ppb(ppb: u32) {
    MAX_DRIFT.store(ppb, Relaxed);
}
