//! [`Wall`]: the wall clock by the counter, and the wall time of an [`Instant`] of the counter.

use super::{CLOCK, Counter, error_bound, kernels_monotonic, kernels_realtime};
use vdso_time::{Errno, Instant, SystemTime, WallClock};

/// The clock of [`realtime`](super::realtime), as a type. Its reads are ordered.
///
/// # Examples
///
/// ```
/// use vdso_time::{MonotonicClock, SystemTime, WallClock};
/// use vdso_time_counter::{Counter, Wall};
///
/// let now: SystemTime = Wall::to_realtime(Wall::now());
/// println!("{now:?}");
///
/// // Take an instant now, and its wall time when it is written.
/// let event = Counter::now();
/// let at: SystemTime<Wall> = Wall::of(event)?;
/// # Ok::<(), vdso_time::Errno>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wall {}

impl WallClock for Wall {
    #[inline]
    fn try_now() -> Result<SystemTime<Self>, Errno> {
        let nanos = CLOCK.realtime_ordered().or_else(|| CLOCK.slow_realtime());
        nanos.map_or_else(kernels_realtime, Ok).map(SystemTime::from_nanos)
    }
}

impl Wall {
    /// Returns the wall time of an instant, by the present offset between the two clocks.
    ///
    /// If somebody has set the wall clock since the instant, it is the time that the clock would
    /// have had. The wall time advances while the system is suspended and the instant does not, so
    /// an instant from before a suspend gets a time that is too late.
    ///
    /// # Errors
    ///
    /// The sandbox's error, if it denies every way to read the clock.
    pub fn of(instant: Instant<Counter>) -> Result<SystemTime<Self>, Errno> {
        let offset = match CLOCK.offset() {
            Some(offset) => offset,
            // For the error of a sandbox.
            None => kernels_realtime()?.saturating_sub(kernels_monotonic()? as i64),
        };
        Ok(SystemTime::from_nanos(instant.as_nanos().saturating_add(offset)))
    }

    /// Converts a time of this clock, which is on the scale of `CLOCK_REALTIME`.
    #[inline]
    #[must_use]
    pub fn to_realtime(time: SystemTime<Self>) -> SystemTime {
        match time.duration_since(Self::UNIX_EPOCH) {
            Ok(after) => SystemTime::UNIX_EPOCH + after,
            Err(before) => SystemTime::UNIX_EPOCH - before.duration(),
        }
    }
}

/// Returns how far the next [`realtime`](super::realtime) may be from `CLOCK_REALTIME`, in
/// nanoseconds, unless somebody sets the clock before.
///
/// It is [`error_bound`] and the difference between the offset of the two clocks that is used and
/// the one that the kernel's clocks have now. So it includes a step that `realtime` does not follow
/// yet.
///
/// # Examples
///
/// ```
/// use vdso_time_counter as counter;
///
/// println!("{} ns, give or take {} ns", counter::realtime(), counter::realtime_error_bound());
/// ```
#[must_use]
pub fn realtime_error_bound() -> u64 {
    CLOCK.wall_bound(error_bound()).unwrap_or(u64::MAX)
}

/// Makes [`realtime`](super::realtime) follow the kernel's wall clock at once.
///
/// A thread that set the clock calls this. Each read that happens after it sees the step. Without
/// it the clock sees the step when the segment ends.
///
/// It returns `false` if a sandbox denies the clock. It gives up after 10 us if another caller is
/// updating the clock: a signal handler can have interrupted it, or a fork cut it off. It gives up
/// after 100 us in any case. Then the clock follows when the segment ends.
/// [`monotonic`](super::monotonic) does not change.
///
/// # Examples
///
/// ```
/// use vdso_time_counter as counter;
///
/// // After a successful clock_settime(2):
/// if !counter::resync() {
///     println!("realtime() follows within 17 ms");
/// }
/// ```
pub fn resync() -> bool {
    CLOCK.resync()
}
